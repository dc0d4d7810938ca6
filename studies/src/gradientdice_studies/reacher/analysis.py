"""From the grid's curves to MSE(ρ), and the hyper-parameters chosen with and without the truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradientdice_studies.reacher.grid import LEARNERS, Setting, settings
from gradientdice_studies.reacher.protocols import DISCOUNTS, truth


@dataclass(frozen=True, eq=False)
class Chosen:
    """A learner's runs at one setting.

    Attributes:
        setting: learning rate and penalty.
        errors: (seeds, records) of MSE(ρ) = ½(ρ − ρ̂)²; infinite once a run has diverged.
        mean_ratio: (seeds, records) of E[τ].
        diverged: how many of the runs diverged.
    """

    setting: Setting
    errors: np.ndarray
    mean_ratio: np.ndarray
    diverged: int

    @property
    def final(self) -> float:
        """The mean over runs at the end."""
        return float(self.errors[:, -1].mean())

    @property
    def roughness(self) -> float:
        """How much the error of ρ̂ fluctuates in the second half of a run, relative to its mean: how stable it is."""
        half = np.sqrt(2 * self.errors[:, self.errors.shape[1] // 2 :])
        return float(np.median(np.abs(np.diff(half, axis=1)).mean(axis=1) / half.mean(axis=1)))


def candidates(grid: dict[str, np.ndarray], protocol: str, learner: str, discount: float) -> list[Chosen]:
    """A learner's settings at one discount."""
    own_runs = protocol == "corrected" and discount == 1
    curve, diverged = (grid[f"{'corrected' if own_runs else 'paper'}_{name}"] for name in ("curve", "diverged_at"))
    value, _ = truth(protocol)[discount]
    found = []
    for number, setting in enumerate(settings((1.0,) if own_runs else DISCOUNTS)):
        if setting.learner == learner and setting.discount == discount:
            with np.errstate(over="ignore"):
                errors = 0.5 * (curve[number, :, :, 0].astype(np.float64) - value) ** 2
            found.append(Chosen(setting, errors, curve[number, :, :, 1], int((diverged[number] >= 0).sum())))
    return found


def by_truth(grid: dict[str, np.ndarray], protocol: str) -> dict[tuple[str, float], Chosen]:
    """The paper's choice: the smallest true error at the end, which is not known from a log."""
    pairs = [(learner, discount) for learner in LEARNERS for discount in DISCOUNTS]
    return {pair: min(candidates(grid, protocol, *pair), key=lambda c: c.final) for pair in pairs}


def by_mean_ratio(grid: dict[str, np.ndarray], protocol: str) -> dict[tuple[str, float], Chosen]:
    """A choice without the truth: the setting whose mean ratio is nearest to 1 at the end."""
    pairs = [(learner, discount) for learner in LEARNERS for discount in DISCOUNTS]
    return {pair: min(candidates(grid, protocol, *pair), key=_ratio_error) for pair in pairs}


def _ratio_error(chosen: Chosen) -> float:
    if chosen.diverged:
        return np.inf
    return float(np.mean(np.abs(chosen.mean_ratio[:, -1] - 1)))
