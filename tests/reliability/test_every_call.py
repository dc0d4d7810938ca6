"""Every public call with nonsense in one, two or three arguments: an answer with finite numbers, or one sentence."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import gradientdice as gd
import shapes
from reliability.calls import JUNK
from reliability.right_calls import HELD, NOT_CALLED, USED, RightCall, right_calls
from reliability.sound import is_sound

KINDS = [np.float64, np.float32, np.int8, np.uint64, np.complex128, np.bool_, np.dtype("U2"), np.dtype("M8[s]")]  # fmt: skip
SHAPES = [(), (0,), (2,), (13,), (100,), (2, 2), (13, 2), (26, 26), (2, 0), (2, 2, 2)]
NONSENSE = st.one_of(
    st.sampled_from(JUNK),
    st.integers(-(2**70), 2**70),
    st.integers(-3, 30),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.one_of(st.integers(-3, 3), st.floats(), st.none(), st.text(max_size=1)), max_size=4),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    arrays(st.sampled_from(KINDS), st.sampled_from(SHAPES)),
)


@pytest.fixture(autouse=True)
def without_the_checks_of_the_tests(monkeypatch):
    """Wrong shapes must reach the library's own refusals."""
    monkeypatch.setattr(shapes, "CALLS", 0)


class Calls(list[RightCall]):
    """Calls that hypothesis can name in a few words."""

    def __repr__(self) -> str:
        return f"{len(self)} calls"


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    # A sweep trains with JAX, for seconds: its refusals are tried one by one, in test_bad_input.
    return Calls(call for call in right_calls(tmp_path_factory.mktemp("calls")) if call.function is not gd.sweep)


def test_the_right_calls_are_right_and_complete(calls):
    for call in calls:
        assert is_sound(call.function(**call.arguments)), call
    tried = {getattr(call.function, "__name__", "") for call in calls} | NOT_CALLED | USED | HELD | {"sweep"}
    for module in (gd, gd.mdp):
        public = {name for name in module.__all__ if callable(getattr(module, name))}
        assert {getattr(getattr(module, name), "__name__", name) for name in public} <= tried


def try_nonsense(calls, place, values, folder, monkeypatch):
    """The arguments from a place among all calls on, given these values."""
    call = calls[place % len(calls)]
    first = place // len(calls)
    nonsense = (
        {call.names[(first + k) % len(call.names)]: value for k, value in enumerate(values)} if call.names else {}
    )
    with monkeypatch.context() as patch:
        patch.chdir(folder)  # a word may be the name of a file to write
        try:
            found = call.function(**{**call.arguments, **nonsense})
        except gd.InputError as error:
            assert str(error) and "\n" not in str(error) and len(str(error)) < 700
        else:
            assert is_sound(found), (str(call), nonsense)


QUICK: Any = {"suppress_health_check": list(HealthCheck)}
PLACES, VALUES = st.integers(0, 10_000), st.lists(NONSENSE, min_size=1, max_size=3)


@settings(max_examples=150, **QUICK)
@given(place=PLACES, values=VALUES)
def test_nonsense_is_refused_or_answered(calls, place, values, tmp_path_factory, monkeypatch):
    try_nonsense(calls, place, values, tmp_path_factory.getbasetemp(), monkeypatch)


@pytest.mark.slow
@settings(max_examples=10_000, **QUICK)
@given(place=PLACES, values=VALUES)
def test_much_nonsense_is_refused_or_answered(calls, place, values, tmp_path_factory, monkeypatch):
    try_nonsense(calls, place, values, tmp_path_factory.getbasetemp(), monkeypatch)
