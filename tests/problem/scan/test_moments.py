"""Moments of a scanned log do not depend on how its features are cut into chunks, nor on the thread that sums them."""

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

import gradientdice as gd
from gradientdice.log.scanning.passes import Run
from gradientdice.problem.scan import moments
from gradientdice.problem.scan.asked import as_asked
from gradientdice.problem.scan.written import ChunkMemory
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


@pytest.mark.parametrize("narrow", [0, moments.NARROW], ids=["wide", "narrow"])
def test_threads_give_the_same_bits(monkeypatch, narrow):
    monkeypatch.setattr(moments, "CHUNK_ROWS", 10)
    monkeypatch.setattr(moments, "NARROW", narrow)
    log = gd.scan(as_table(DATA), batch_rows=50)
    sample = log.sample
    of = moments.BatchFeatures(as_function(TARGET), features(), 0, True, sample.states.dtype, vectors=False)
    asked = as_asked(log, as_function(TARGET), features(), 0, Run())
    alone, *others = (
        asked.summed(lambda _, t=threads: moments.MomentPass(features=of, threads=t)) for threads in (0, 1, 3)
    )
    for other in others:
        assert alone.keys() == other.keys()
        for name in alone:
            np.testing.assert_array_equal(alone[name], other[name])


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_memory_that_is_used_again_has_the_rows_of_new_memory(monkeypatch, ends, intercept):
    monkeypatch.setattr(moments, "CHUNK_ROWS", 10)
    rng = np.random.default_rng(5)
    data = with_fields(DATA, terminated=rng.random(len(DATA)) < 0.2, weights=WEIGHTS)
    functions = gd.LinearFeatures(lambda s, a: np.column_stack([np.cos(s), np.sin(s) * a]), intercept)
    of = moments.BatchFeatures(as_function(TARGET), functions, 0, ends, data.states.dtype, vectors=False)
    memories = [ChunkMemory(absorbing=ends) for _ in range(2)]
    written = of.written(data, memories)
    for rows, expected in of.chunks(data):
        place, found = next(written)
        assert place == rows
        assert found.width == expected.width
        for name in ("current", "following"):
            # Equal rows, but for the constant's share of 1 after a sum over actions in another order.
            np.testing.assert_allclose(getattr(found, name).values, getattr(expected, name).values, rtol=1e-15)
        for name in ("rewards", "weights", "ended"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert next(written, None) is None


def test_blas_has_its_threads_again_after_a_scan():
    libraries = ThreadpoolController()
    before = [library["num_threads"] for library in libraries.info()]
    gd.Moments.from_transitions(gd.scan(as_table(DATA), batch_rows=50), as_function(TARGET), features())
    assert [library["num_threads"] for library in libraries.info()] == before
