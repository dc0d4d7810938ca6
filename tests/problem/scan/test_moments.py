"""Moments of a scanned log do not depend on how its features are cut into chunks, nor on the thread that sums them."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.data.scan.passes import Run
from gradientdice.problem.scan import moments
from gradientdice.problem.scan.asked import as_asked
from scans import as_function, as_table, features, small_table, with_fields

DATA, TARGET = small_table(noise=1.0)
WEIGHTS = np.random.default_rng(3).random(len(DATA))
PARTS = ("gram", "next_gram", "mean", "initial", "reward")


@pytest.mark.parametrize("chunk", [1, 7, 10_000])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_chunks_do_not_matter(monkeypatch, chunk, weights):
    monkeypatch.setattr(moments, "CHUNK_ROWS", chunk)
    data = with_fields(DATA, weights=weights)
    found = gd.Moments.from_transitions(gd.scan(as_table(data), batch_rows=50), as_function(TARGET), features())
    expected = gd.Moments.from_transitions(data, as_function(TARGET), features())
    for name in PARTS:
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12, atol=1e-14)


def test_a_second_thread_gives_the_same_bits(monkeypatch):
    monkeypatch.setattr(moments, "CHUNK_ROWS", 10)
    log = gd.scan(as_table(DATA), batch_rows=50)
    sample = log.sample
    of = moments.BatchFeatures(as_function(TARGET), features(), 0, True, sample.states.dtype, vectors=False)
    asked = as_asked(log, as_function(TARGET), features(), 0, Run())
    one, two = (asked.summed(lambda _, b=beside: moments.MomentPass(features=of, beside=b)) for beside in (False, True))
    assert one.keys() == two.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], two[name])


def test_an_error_beside_is_raised_here():
    def bad(one):
        raise gd.InputError("no")

    with pytest.raises(gd.InputError, match="no"):
        moments._for_each_beside(bad, iter([None, None]))  # pyright: ignore[reportArgumentType, reportPrivateUsage]
