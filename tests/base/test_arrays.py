"""The entrance for arrays: nothing is silently made into something else."""

from decimal import Decimal

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.base import arrays
from gradientdice.base.arrays import as_array, as_floats, as_numbers, require_memory, require_moderate, require_usable


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "it is None"),
        (np.ma.MaskedArray([1.0, -999.0], [False, True]), "it has a masked value, first in row 1"),
        ([1 + 2j, 0], "complex numbers"),
        ([[1, 2], [3]], "rows of different lengths"),
        (["a", "b"], "words such as a"),
        ([1, None], r"a NoneType \(row 1: None\)"),
        ([[1, 2], [3, "x"]], "words"),
        ({1, 2}, "must hold numbers"),
        ({"a": 1}, "must hold numbers"),
        ((x for x in range(3)), "must hold numbers"),
        ([Decimal("1.5")], "must hold numbers, not"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "dates"),
        (np.zeros(2, dtype=[("a", "f8")]), "records"),
        ([10**30], "must hold numbers"),
    ],
)
def test_what_is_no_array_of_numbers_is_refused_by_name(value, words):
    with pytest.raises(gd.InputError, match=words) as caught:
        as_numbers("it", value)
    assert str(caught.value).startswith("it ") and len(str(caught.value)) < 400


def test_an_object_whose_conversion_fails_is_refused():
    class Broken:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("on another device\nsecond line")

    with pytest.raises(gd.InputError, match="it cannot be made into an array: on another device. Give"):
        as_array("it", Broken())


def test_plain_arrays_come_through():
    frozen = np.arange(3.0)
    frozen.setflags(write=False)
    assert as_numbers("it", frozen) is frozen
    swapped = as_numbers("it", np.arange(3, dtype=">i4"))
    assert swapped.dtype.isnative and swapped.tolist() == [0, 1, 2]
    assert as_numbers("it", np.ones(2, dtype=np.longdouble)).dtype == np.float64
    assert as_numbers("it", np.ma.MaskedArray([1, 2], False)).tolist() == [1, 2]
    assert as_floats("it", [True, False]).dtype == np.float64


def test_numbers_whose_squares_overflow_are_refused():
    require_moderate("it", np.array([1e99, -1e99]))
    with pytest.raises(gd.InputError, match="it has a number beyond 1e\\+100, first in row 1"):
        require_moderate("it", np.array([[1.0, 1.0], [-1e200, 1.0]]))


def test_memory_is_refused_before_it_is_taken(monkeypatch):
    monkeypatch.setattr(arrays, "free_memory", lambda: 2.0**30)
    require_memory("It", 1000, 1000, remedy="Less.")
    with pytest.raises(gd.InputError, match=r"It would take 7\.5 GiB \(1,000 × 1,000,000 numbers\), and 1\.0 GiB are"):
        require_memory("It", 1000, 10**6, remedy="Less.")
    calls = []
    policy = gd.DiscretePolicy(calls.append, 10**6)  # pyright: ignore[reportArgumentType]
    with pytest.raises(gd.InputError, match="The policy's probabilities would take"):
        policy.probabilities_at(np.zeros((1000, 2)))
    assert not calls


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (np.nan, "not finite, first in row 2"),
        (-np.inf, "not finite, first in row 2"),
        (-1e101, "beyond 1e\\+100, first in row 2"),
    ],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_one_look_finds_what_is_not_finite_or_too_large(bad, words, order):
    array = np.ones((4, 3), order=order)
    require_usable("it", array)
    array[2, 1] = bad
    with pytest.raises(gd.InputError, match=words):
        require_usable("it", array)


def test_many_large_numbers_whose_squares_do_not_overflow_are_usable():
    require_usable("it", np.full(1000, 9e99))
    require_usable("it", np.full(1000, 1e30, dtype=np.float32))


def test_without_a_copy_an_array_is_itself_and_the_checks_are_the_same():
    mine = np.ones(3)
    assert as_floats("it", mine, copy=False) is mine and as_floats("it", mine) is not mine
    with pytest.raises(gd.InputError, match="masked"):
        as_floats("it", np.ma.MaskedArray([1.0, 2.0], [False, True]), copy=False)
