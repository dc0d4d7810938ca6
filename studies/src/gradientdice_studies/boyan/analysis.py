"""Analysis of the tables: selection as in the paper, paired comparisons, stability, exact errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from gradientdice.dice.closed_form import solve
from gradientdice.estimators.saddle.gradient_dice import GradientDICE
from gradientdice.problem.moments import Moments
from gradientdice_studies.boyan.grid import (
    DATA_DIST,
    PAPER,
    TARGET,
    Representation,
    chain,
    features_of,
    true_ratio,
)
from gradientdice_studies.boyan.run import Tables, stack_curves
from gradientdice_studies.frames import column, groups, records, rows_where

CASE = ("study", "representation", "learner", "init", "norm_penalty", "discount")
TUNED = ("learning_rate", "ridge")
# (representation, learner, discount) -> errors (runs, records).
Curves = dict[tuple[str, str, float], np.ndarray]


def select(runs: pd.DataFrame) -> pd.DataFrame:
    """For each case the learning rate and ridge with the lowest mean final error, as the paper selects.

    This uses the true ratio, which nobody has: it is how the learners compare at their best, not a method.
    """
    rows = []
    for case, of_case in groups(runs, *CASE):
        settings = [
            {**dict(zip(TUNED, tuned, strict=True)), **_summary(column(here, "final_error").to_numpy(dtype=float))}
            for tuned, here in groups(of_case, *TUNED)
        ]
        rows.append({**dict(zip(CASE, case, strict=True)), **min(settings, key=lambda setting: setting["mean"])})
    return pd.DataFrame(rows)


def _summary(errors: np.ndarray) -> dict[str, float]:
    """Mean and standard error of the final errors; infinite if a run diverged."""
    spread = float(errors.std(ddof=1)) if np.isfinite(errors).all() else np.inf
    return {"mean": float(errors.mean()), "standard_error": spread / np.sqrt(len(errors))}


def selected_curves(tables: Tables, chosen: pd.DataFrame) -> Curves:
    """(representation, learner, discount) -> curves (runs, records) of the selected settings of the paper's grid."""
    return {
        (row["representation"], row["learner"], row["discount"]): stack_curves(_runs_of(tables.runs, row))
        for row in records(rows_where(chosen, study=PAPER))
    }


def _runs_of(runs: pd.DataFrame, setting: dict[str, Any]) -> pd.DataFrame:
    """The runs of one selected setting, by seed."""
    found = rows_where(runs, **{name: setting[name] for name in (*CASE, *TUNED)})
    return found.sort_values(by="seed")


def diverged_shares(runs: pd.DataFrame) -> dict[float, float]:
    """Discount -> the share of the runs that diverged."""
    return {gamma: float((column(rows, "status") != "ok").mean()) for (gamma,), rows in groups(runs, "discount")}


def compare_final(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """The mean difference of two learners' final errors and its standard error; runs of one seed are paired."""
    difference = first[:, -1] - second[:, -1]
    return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))


def spread_between(curves: np.ndarray) -> float:
    """The standard deviation over runs, averaged over the last half of training."""
    late = curves[:, curves.shape[1] // 2 :]
    return float(late.std(axis=0, ddof=1).mean())


def wobble_within(curves: np.ndarray) -> float:
    """The mean absolute change of a run's error between records, over the last half of training."""
    late = curves[:, curves.shape[1] // 2 :]
    return float(np.abs(np.diff(late, axis=1)).mean())


def exact_error(representation: Representation, discount: float, ridge: float = 0.0) -> float:
    """MSE(τ) of GradientDICE's fixed point: the limit of the learner with unlimited data and steps."""
    features = features_of(representation)
    x = np.eye(26) if features is None else features
    solution = solve(GradientDICE(discount, ridge=ridge), Moments.exact(chain(discount), TARGET, x, DATA_DIST))
    return float(np.mean((x @ solution.ratio_params - true_ratio(discount)) ** 2))


def best_fit_error(discount: float) -> float:
    """The lowest MSE(τ) that any function of Boyan's features has."""
    x, truth = features_of("linear"), true_ratio(discount)
    assert x is not None
    return float(np.mean((x @ np.linalg.lstsq(x, truth, rcond=None)[0] - truth) ** 2))
