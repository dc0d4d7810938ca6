"""Figure 4's whole grid (3,240 runs of 10³ steps, ρ̂ on the whole log every 10), timed with compilation.

`python benchmarks/reacher_grid.py --log log.npz --output grid.npz` on the machine to measure; the log is made by
`gradientdice reproduce reacher` (parts/log.npz). `--against grid.npz` instead runs the first seeds here and says how
far the curves are from those in the file, which another device made.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

STARTED = time.perf_counter()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--seeds", type=int, default=30)
    arguments = parser.parse_args()
    import jax

    import gradientdice as gd

    data = gd.load(arguments.log)
    print(f"Device: {jax.devices()[0].device_kind}; JAX {jax.__version__}; {len(data):,} transitions.\n")
    if arguments.against is not None:
        compare(data, arguments.seeds, arguments.against)
    else:
        measure(data, arguments.seeds, arguments.output)


def measure(data, seeds: int, output: Path | None) -> None:
    import numpy as np

    from gradientdice_studies.reacher.grid import run_corrected, run_paper

    ready = time.perf_counter()
    found = run_paper(data, seeds)
    done = time.perf_counter()
    again = run_paper(data, seeds)
    last = time.perf_counter()
    runs = found["paper_curve"].shape[0] * seeds
    same = all(np.array_equal(found[name], again[name], equal_nan=True) for name in found)
    found |= run_corrected(data, seeds)
    lines = [
        "| what | seconds |",
        "|---|---|",
        f"| imports, the log, starting the device | {ready - STARTED:.1f} |",
        f"| {runs:,} runs of 1,000 steps, with compilation | {done - ready:.1f} |",
        f"| the same again | {last - done:.1f} |",
        f"| the corrected protocol's {found['corrected_curve'].shape[0] * seeds:,} runs at discount 1, with compilation | {time.perf_counter() - last:.1f} |",
    ]
    print("\n".join(lines))
    print(f"\nThe second time gave the same bits: {'yes' if same else 'no'}.")
    if output is not None:
        np.savez_compressed(output, **found)


def compare(data, seeds: int, against: Path) -> None:
    import numpy as np

    from gradientdice_studies.reacher.grid import LEARNERS, run_paper, settings

    here = run_paper(data, seeds)["paper_curve"][..., 0].astype(np.float64)
    with np.load(against) as archive:
        there = archive["paper_curve"][:, :seeds, :, 0].astype(np.float64)
    learners = np.array([setting.learner for setting in settings()])
    differ = np.isfinite(here[..., -1]) != np.isfinite(there[..., -1])
    print(f"{here.shape[0] * seeds} runs; {int(differ.sum())} diverge on one device only.\n")
    print("| learner | step | median relative difference of ρ̂ | 90% quantile | largest |")
    print("|---|---|---|---|---|")
    for learner in LEARNERS:
        mine, theirs = (
            here[learners == learner].reshape(-1, here.shape[-1]),
            there[learners == learner].reshape(-1, here.shape[-1]),
        )
        alive = np.isfinite(mine).all(axis=1) & np.isfinite(theirs).all(axis=1)
        gap = np.abs(mine[alive] - theirs[alive]) / np.maximum(np.abs(theirs[alive]), 1e-3)
        for record in (0, 1, 10, 50, 100):
            figures = [np.median(gap[:, record]), np.quantile(gap[:, record], 0.9), gap[:, record].max()]
            print(f"| {learner} | {record * 10} | " + " | ".join(f"{figure:.1e}" for figure in figures) + " |")


if __name__ == "__main__":
    main()
