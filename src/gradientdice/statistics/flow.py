"""The held-out flow residual of a ratio in the common kernel.

    ‖ (1−γ) E_μ0[ψ̄] + E[ τ (γψ̄' − ψ) ] ‖²,

with ψ the kernel's random features and τ from fits that did not see the row, without the bias of squared noise. It
comes with the standard deviation that it would have if the flow were conserved. It says whether a ratio is one of
stationary distributions; it does not choose well between candidates (docs/results/continuous.md), since most of what
it sees has nothing to do with the rewards.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradientdice.base.accelerator import double_precision
from gradientdice.functions.device_rows import DeviceRows
from gradientdice.problem.design import Design
from gradientdice.problem.problem import Problem
from gradientdice.problem.stream import LogDesign
from gradientdice.statistics.bellman import test_functions

FLIPS = 20


def flow_residuals(problem: Problem, discount: float, ratios: Sequence[np.ndarray]) -> list[tuple[float, float]]:
    """For each held-out ratio the residual, and its standard deviation where the flow is conserved."""
    data = problem.data
    weights = data.row_weights
    masses = np.column_stack(ratios) * (weights / weights.sum())[:, None]
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(len(data), FLIPS))
    parts = [_residuals(problem.design_of(kernel), masses, signs, discount) for kernel in test_functions()]
    mean = np.mean(parts, axis=0)
    return [(float(row[0]), float(row[1:].std())) for row in mean]


def _residuals(log: LogDesign, masses: np.ndarray, signs: np.ndarray, discount: float) -> np.ndarray:
    """(ratios, 1 + flips): the squared residual, then those of its noise alone, less what noise adds on average."""
    # The absorbing state is not looked at: what comes to it follows from the rest.
    width, tests = log.width, log.width - log.absorbing
    start = share = None
    if log.initial is not None:
        start = np.asarray(log.initial.matrix(width))[:, :tests]
        share = log.initial_weights / log.initial_weights.sum()
    count = masses.shape[1]
    flow, own = np.zeros((tests, count, 1 + signs.shape[1])), np.zeros(count)
    again = share @ start if discount == 1 and start is not None and share is not None else None
    for rows, design in log.chunks():
        if log.devices is not None:
            moved, lengths = _on_device(log, design, again, discount, masses[rows], signs[rows])
            flow += moved
            own += lengths
            continue
        change = discount * np.asarray(design.following.matrix(width))[:, :tests]
        if again is not None:
            change[design.ended] = again
        change -= np.asarray(design.current.matrix(width))[:, :tests]
        own += np.sum(change**2, axis=1) @ masses[rows] ** 2
        flow[:, :, 0] += change.T @ masses[rows]
        for flip in range(signs.shape[1]):
            flow[:, :, 1 + flip] += change.T @ (masses[rows] * signs[rows, flip, None])
    # The noise is that about the mean: without this, the mean change itself would be taken for noise.
    flow[:, :, 1:] -= flow[:, :, :1] * ((masses.T @ signs) / masses.sum(axis=0)[:, None])
    if start is not None and share is not None and discount < 1:
        mean = (1 - discount) * (share @ start)
        own_shares = share[:, None] * ((1 - discount) * start - mean)
        flips = np.random.default_rng(1).choice([-1.0, 1.0], size=(len(start), signs.shape[1]))
        flow += np.column_stack([mean, own_shares.T @ flips])[:, None, :]
        own += float(np.sum(own_shares**2))
    return np.sum(flow**2, axis=0) - own[:, None]


def _on_device(
    log: LogDesign, design: Design, again: np.ndarray | None, discount: float, masses: np.ndarray, signs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What a chunk adds to the flow and to its own squares, without the absorbing state's feature."""
    from gradientdice.functions.device_programs import flow_sums

    current, following = design.current, design.following
    assert isinstance(current, DeviceRows) and isinstance(following, DeviceRows)
    tests = log.width - log.absorbing
    place, devices = current.place, current.place.devices
    restarts = np.zeros(len(masses)) if again is None else design.ended.astype(np.float64)
    all_signs = np.column_stack([np.ones(len(signs)), signs])
    with double_precision():
        moved, lengths = flow_sums(
            tests,
            current.values,
            following.values,
            devices.put(np.zeros(tests) if again is None else again),
            place.put(restarts),
            devices.put(np.asarray(discount)),
            place.put(masses),
            place.put(all_signs),
        )
        return np.asarray(moved), np.asarray(lengths)
