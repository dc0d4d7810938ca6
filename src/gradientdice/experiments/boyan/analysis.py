"""From the tables to what is said about them: selection as the paper does it, wins, stability, claims."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gradientdice.estimators import GradientDICE
from gradientdice.experiments.boyan.grid import (
    DATA_DIST,
    PAPER,
    TARGET,
    Representation,
    chain,
    features_of,
    true_ratio,
)
from gradientdice.experiments.boyan.run import Tables, stack_curves
from gradientdice.moments import Moments
from gradientdice.solvers.closed_form import solve

CASE = ["study", "representation", "learner", "init", "norm_penalty", "discount"]
TUNED = ["learning_rate", "ridge"]


def select(runs: pd.DataFrame) -> pd.DataFrame:
    """For each case the learning rate and ridge with the lowest mean final error, as the paper selects.

    This uses the true ratio, which nobody has: it is how the learners compare at their best, not a method.
    """
    by_setting = runs.groupby([*CASE, *TUNED], dropna=False, sort=False)["final_error"]
    table = by_setting.agg(mean="mean", std=_spread, runs="size").reset_index()
    best = table.groupby(CASE, dropna=False, sort=False)["mean"].idxmin()
    chosen = table.loc[best].reset_index(drop=True)
    chosen["standard_error"] = chosen["std"] / np.sqrt(chosen["runs"])
    return chosen


def _spread(errors: pd.Series) -> float:
    """The standard deviation; infinite if a run diverged."""
    values = errors.to_numpy()
    return float(values.std(ddof=1)) if np.isfinite(values).all() else np.inf


def rows_of(runs: pd.DataFrame, chosen: pd.Series) -> pd.DataFrame:
    """The runs of one selected setting, by seed."""
    match = np.ones(len(runs), dtype=bool)
    for column in [*CASE, *TUNED]:
        same = runs[column].isna() if pd.isna(chosen[column]) else runs[column] == chosen[column]
        match &= same.to_numpy()
    return runs[match].sort_values("seed")


def selected_curves(tables: Tables, chosen: pd.DataFrame) -> dict[tuple[str, str, float], np.ndarray]:
    """(representation, learner, discount) -> curves (runs, records) of the selected settings of the paper's grid."""
    paper = chosen[chosen["study"] == PAPER]
    return {
        (row["representation"], row["learner"], row["discount"]): stack_curves(rows_of(tables.runs, row))
        for _, row in paper.iterrows()
    }


def compare_final(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """The mean difference of two learners' final errors and its standard error; runs of one seed are paired."""
    difference = first[:, -1] - second[:, -1]
    return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))


def spread_between(curves: np.ndarray) -> float:
    """How far the runs lie apart: the standard deviation over runs, averaged over the last half of training."""
    late = curves[:, curves.shape[1] // 2 :]
    return float(late.std(axis=0, ddof=1).mean())


def wobble_within(curves: np.ndarray) -> float:
    """How much one run's curve moves: the mean absolute change between records over the last half of training."""
    late = curves[:, curves.shape[1] // 2 :]
    return float(np.abs(np.diff(late, axis=1)).mean())


def exact_error(representation: Representation, discount: float, ridge: float = 0.0) -> float:
    """MSE(τ) of GradientDICE's fixed point: what the learner would reach with endless data and steps."""
    features = features_of(representation)
    x = np.eye(26) if features is None else features
    solution = solve(GradientDICE(discount, ridge=ridge), Moments.exact(chain(discount), TARGET, x, DATA_DIST))
    return float(np.mean((x @ solution.ratio_params - true_ratio(discount)) ** 2))


def best_fit_error(discount: float) -> float:
    """The lowest MSE(τ) that any function of Boyan's features has."""
    x, truth = features_of("linear"), true_ratio(discount)
    assert x is not None
    return float(np.mean((x @ np.linalg.lstsq(x, truth, rcond=None)[0] - truth) ** 2))
