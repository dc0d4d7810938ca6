"""Cores, BLAS threads and freed memory of this process."""

import ctypes
import os
import subprocess
import sys
import threading

import numpy as np  # noqa: F401 - it loads the library
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from gradientdice.base import process
from gradientdice.base.process import give_back_freed_memory, one_blas_thread, usable_cores


def test_only_the_cores_of_this_process_count(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda number: {0, 2, 5}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    assert usable_cores() == 3


def test_where_the_system_does_not_tell_all_cores_count(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    assert usable_cores() == 16
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores() == 1


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


# What lies between freed arrays keeps glibc from giving them back by itself.
LEAVE_BEHIND = """
import numpy as np
from gradientdice.base.process import give_back_freed_memory

def resident():
    return int(open("/proc/self/statm").read().split()[1])

np.ones(3_000_000)  # freed at once: from now on arrays of up to 24 MB come from kept memory
arrays = [np.ones(20_000) for _ in range(1_000)]
pins = arrays[::20]
full = resident()
del arrays
before = resident()
there_was_some = give_back_freed_memory()
print(full, before, resident(), there_was_some)
assert all(pin.sum() == 20_000 for pin in pins)
"""


@pytest.mark.skipif(sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="glibc only")
def test_what_arrays_left_behind_is_given_back():
    done = subprocess.run([sys.executable, "-c", LEAVE_BEHIND], check=True, capture_output=True, text=True)
    full, before, after, said = done.stdout.split()
    pages = 0.95 * 1_000 * 160_000 / 4096
    assert int(full) - int(before) < 0.2 * pages
    assert int(before) - int(after) > 0.8 * pages
    assert said == "True"


def test_with_another_c_library_nothing_happens(monkeypatch):
    monkeypatch.setattr(process, "_trim", lambda: None)
    assert give_back_freed_memory() is False
