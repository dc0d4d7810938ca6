"""BLAS has one thread within the context and its own number after it, whoever leaves first."""

import threading

import numpy as np  # noqa: F401 - it loads the library
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from gradientdice.base.blas import one_blas_thread

LIBRARIES = ThreadpoolController().select(user_api="blas")


def threads() -> list[int]:
    return [library["num_threads"] for library in LIBRARIES.info()]


@pytest.fixture(autouse=True)
def several_threads():
    with threadpool_limits(limits=3, user_api="blas"):
        yield


def test_the_limit_holds_within_and_ends_after():
    before = threads()
    with one_blas_thread():
        assert set(threads()) == {1}
    assert threads() == before


def test_an_error_within_ends_it_too():
    before = threads()
    with pytest.raises(KeyError), one_blas_thread():
        raise KeyError
    assert threads() == before


@pytest.mark.parametrize("first_leaves_first", [True, False])
def test_of_two_that_overlap_none_leaves_a_limit_behind(first_leaves_first):
    before, other_in, other_may_leave = threads(), threading.Event(), threading.Event()

    def other():
        with one_blas_thread():
            other_in.set()
            other_may_leave.wait(10)

    thread = threading.Thread(target=other)
    with one_blas_thread():
        thread.start()
        other_in.wait(10)
        if not first_leaves_first:
            other_may_leave.set()
            thread.join()
            assert set(threads()) == {1}
    other_may_leave.set()
    thread.join()
    assert threads() == before
    with one_blas_thread():
        assert set(threads()) == {1}
    assert threads() == before
