"""The speed of the Boyan grid, as ratios in one run.

Ours: the paper's whole grid (9,720 runs, 2.9·10⁸ updates) in a fresh process, compilation and import included.
Against it: the same GradientDICE update in eager PyTorch, one run at a time as the paper's authors ran it, and a NumPy
version that advances all runs together on one core.

    python benchmarks/boyan_grid.py                       all three, printed
    python benchmarks/boyan_grid.py --grid-only --table T only ours, written to T as Markdown (for accelerators)
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

RUNS, STEPS = 9_720, 30_000
UPDATES = RUNS * STEPS


def run_grid() -> None:
    """The child process: runs the grid and prints the seconds of its phases."""
    started = time.perf_counter()
    import jax

    from gradientdice.dice.stochastic.training import collect, run_groups
    from gradientdice_studies.boyan.grid import FULL, cells

    groups = [cell.group for cell in cells(FULL, paper_only=True)]
    assert sum(group.size for group in groups) * FULL.runs == RUNS
    outcomes = collect(run_groups(groups, range(FULL.runs)))
    finite = np.mean([np.isfinite(outcome.curve[:, :, -1]).mean() for outcome in outcomes])
    print(f"{time.perf_counter() - started:.2f} {finite:.4f} {jax.devices()[0].device_kind}")


def grid_seconds() -> tuple[float, str]:
    """The wall-clock time of a fresh process that runs the grid, and its device."""
    started = time.perf_counter()
    done = subprocess.run([sys.executable, __file__, "--child"], capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - started
    return seconds, done.stdout.strip().split(maxsplit=2)[2]


def torch_update_seconds(updates: int = 1500) -> float:
    """One eager PyTorch update of tabular GradientDICE with batch 1: forward, backward, SGD step."""
    import torch

    torch.set_num_threads(1)
    rng, gamma = np.random.default_rng(0), 0.9
    tau, critic = torch.nn.Linear(26, 1, bias=False), torch.nn.Linear(26, 1, bias=False)
    eta = torch.nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.SGD([*tau.parameters(), *critic.parameters(), eta], lr=0.01)
    eye = torch.eye(26)

    def update() -> None:
        x, x_next, x0 = (eye[int(i)][None] for i in rng.integers(0, 26, size=3))
        t, f, f_next, f0 = tau(x), critic(x), critic(x_next), critic(x0)

        def objective(
            t: torch.Tensor, f: torch.Tensor, f_next: torch.Tensor, f0: torch.Tensor, e: torch.Tensor
        ) -> torch.Tensor:
            return ((1 - gamma) * f0 + gamma * t * f_next - t * f - 0.5 * f**2 + e * t - e - 0.5 * e**2).mean()

        minimise = objective(t, f.detach(), f_next.detach(), f0.detach(), eta.detach())
        maximise = objective(t.detach(), f, f_next, f0, eta)
        optimiser.zero_grad()
        (minimise - maximise).backward()
        optimiser.step()

    for _ in range(100):
        update()
    started = time.perf_counter()
    for _ in range(updates):
        update()
    return (time.perf_counter() - started) / updates


def numpy_update_seconds(steps: int = 300) -> float:
    """One update of tabular GradientDICE in a NumPy loop that advances all 9,720 runs together, each on its own draws."""
    rng, gamma, rate = np.random.default_rng(0), 0.9, np.float32(0.01)
    truth = rng.normal(size=26).astype(np.float32)
    w, kappa = (rng.normal(size=(RUNS, 26)).astype(np.float32) for _ in range(2))
    eta, rows = np.zeros(RUNS, dtype=np.float32), np.arange(RUNS)
    started = time.perf_counter()
    for _ in range(steps):
        i = rng.integers(0, 26, size=RUNS)
        j = np.maximum(i // 2 - 1 - i % 2, 0) * 2 + (rng.random(RUNS) < 0.9)
        k = rng.integers(0, 13, size=RUNS) * 2 + (rng.random(RUNS) < 0.9)
        tau, f, f_next = w[rows, i], kappa[rows, i], kappa[rows, j]
        np.add.at(kappa, (rows, i), -rate * (tau + f))
        np.add.at(kappa, (rows, j), rate * gamma * tau)
        np.add.at(kappa, (rows, k), rate * (1 - gamma))
        w[rows, i] -= rate * (gamma * f_next - f + eta)
        eta += rate * (tau - 1 - eta)
    np.mean((w - truth) ** 2, axis=1)
    return (time.perf_counter() - started) / (steps * RUNS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--grid-only", action="store_true", help="do not time PyTorch and NumPy")
    parser.add_argument("--table", type=Path, help="write the grid's time to this Markdown file")
    arguments = parser.parse_args()
    if arguments.child:
        run_grid()
        return
    seconds, device = grid_seconds()
    mine = seconds / UPDATES
    lines = [f"| {device} | {seconds:.1f} | {mine * 1e9:.0f} |"]
    print(f"full grid, {RUNS:,} runs of {STEPS:,} updates, import and compilation included, on {device}")
    print(f"  gradientdice          {seconds:8.1f} s   {mine * 1e9:8.0f} ns an update")
    if not arguments.grid_only:
        for name, other in (
            ("NumPy, all runs at once", numpy_update_seconds()),
            ("PyTorch, eager", torch_update_seconds()),
        ):
            print(
                f"  {name:<24}{other * UPDATES:6.0f} s   {other * 1e9:8.0f} ns an update   {other / mine:6.0f} times ours"
            )
    if arguments.table:
        header = "| device | seconds, all included | ns an update |\n|---|---|---|"
        arguments.table.parent.mkdir(parents=True, exist_ok=True)
        arguments.table.write_text(
            "# Boyan's grid on one accelerator\n\n"
            f"Written by `python benchmarks/boyan_grid.py --grid-only --table …`.\n\n{header}\n"
            + "\n".join(lines)
            + "\n"
        )


if __name__ == "__main__":
    main()
