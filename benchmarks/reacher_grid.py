"""Figure 4's whole grid (3,240 runs of 10³ steps, ρ̂ on the whole log every 10), timed with compilation.

`python benchmarks/reacher_grid.py --log log.npz --output grid.npz` on the machine to measure; the log is made by
`gradientdice reproduce reacher` (parts/log.npz).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

STARTED = time.perf_counter()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=30)
    arguments = parser.parse_args()
    import jax
    import numpy as np

    import gradientdice as gd
    from gradientdice.experiments.reacher.grid import run_grid

    data = gd.load(arguments.log)
    device = jax.devices()[0]
    ready = time.perf_counter()
    found = run_grid(data, arguments.seeds)
    done = time.perf_counter()
    again = run_grid(data, arguments.seeds)
    last = time.perf_counter()
    np.savez_compressed(arguments.output, **found)
    runs = sum(found[f"{name}_curve"].shape[0] * arguments.seeds for name in ("paper", "corrected"))
    same = all(np.array_equal(found[name], again[name], equal_nan=True) for name in found)
    lines = [
        "| what | seconds |",
        "|---|---|",
        f"| imports, the log, starting the device | {ready - STARTED:.1f} |",
        f"| {runs:,} runs of 1,000 steps on {len(data):,} transitions, with compilation | {done - ready:.1f} |",
        f"| the same again | {last - done:.1f} |",
    ]
    print("\n".join(lines))
    print(
        f"\nDevice: {getattr(device, 'device_kind', device.platform)}; JAX {jax.__version__}; the second time gave the same bits: {same}."
    )


if __name__ == "__main__":
    main()
