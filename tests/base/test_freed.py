"""Memory that was freed goes back to the system."""

import ctypes
import subprocess
import sys

import pytest

from gradientdice.base import freed

# What lies between freed arrays keeps glibc from giving them back by itself.
LEAVE_BEHIND = """
import numpy as np
from gradientdice.base.freed import give_back_freed_memory

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
    monkeypatch.setattr(freed, "_trim", lambda: None)
    assert freed.give_back_freed_memory() is False
