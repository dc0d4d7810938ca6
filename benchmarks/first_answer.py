"""Seconds of a process's first answer on a table, beyond the imports of NumPy and SciPy, of two checkouts in turn.

    python benchmarks/first_answer.py --against ../other-checkout

Processes of both alternate, so that both see the same machine; medians and their ratio are printed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

CODE = """
import time
import numpy as np, scipy.sparse, scipy.stats

start = time.perf_counter()
import gradientdice as gd

mdp = gd.mdp.boyan_chain("continuing")
data = mdp.sample(500, np.full((13, 2), 1 / 26), np.random.default_rng(0))
gd.evaluate(data, gd.TabularPolicy(np.tile([0.1, 0.9], (13, 1))), discount=1.0)
print(time.perf_counter() - start)
"""


def seconds(root: Path) -> float:
    """One process that answers with the library of a checkout."""
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, env=environment, check=True)
    return float(done.stdout)


def main() -> None:
    """Print the medians."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--against", type=Path, required=True)
    parser.add_argument("--times", type=int, default=11)
    arguments = parser.parse_args()
    roots = {"other": arguments.against.resolve(), "this": Path(__file__).resolve().parents[1]}
    found: dict[str, list[float]] = {name: [] for name in roots}
    for _ in range(arguments.times + 1):
        for name, root in roots.items():
            found[name].append(seconds(root))
    other, this = (statistics.median(times[1:]) for times in found.values())  # the first compiles the sources
    print(f"other {other:.3f} s, this {this:.3f} s, ratio {this / other:.2f} ({arguments.times} processes each)")


if __name__ == "__main__":
    main()
