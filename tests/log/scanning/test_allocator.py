"""Workers of Dask keep memory that they have freed, unless the user wants otherwise."""

import os
import subprocess
import sys

import pytest

from gradientdice.log.scanning.allocator import OF_DISTRIBUTED, VARIABLE

# How many pages the system gave while one large array was made and freed a hundred times.
CODE = """
import resource, numpy as np
from gradientdice.log.scanning.allocator import keep_freed_memory
kept = keep_freed_memory()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(100):
    np.ones(1_000_000)
print(int(kept), resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def pages(threshold: str) -> tuple[int, int]:
    environment = {**os.environ, VARIABLE: threshold}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True)
    kept, given = map(int, done.stdout.split())
    return kept, given


@pytest.mark.skipif(sys.platform != "linux", reason="glibc alone has these settings")
def test_memory_is_kept_where_distributed_gives_it_back():
    kept, few = pages(OF_DISTRIBUTED)
    own_wish, many = pages("65537")
    assert kept and not own_wish
    assert many > 10 * few
