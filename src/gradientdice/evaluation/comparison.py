"""The rows of `compare`: one for each estimator, ranked by one figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from gradientdice.default.search import NOISE
from gradientdice.estimators.answer import Estimator
from gradientdice.estimators.doubly_robust.cross_fit import cross_fit
from gradientdice.estimators.saddle.estimator import linear_form, objective_of
from gradientdice.evaluation.estimate import Estimate
from gradientdice.problem.problem import Problem
from gradientdice.statistics.influence import HeldOut

if TYPE_CHECKING:
    import pandas as pd

Judge = Callable[[HeldOut], tuple[float, float]]


@dataclass
class ComparedRow:
    """One estimator's row; the fields are the table's columns."""

    estimator: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    standard_error: float | None = None
    bellman_loss: float | None = None
    loss_noise: float | None = None
    verdict: str = ""
    choice: str = ""
    seconds: float = 0.0
    note: str = ""
    remarks: str = ""
    uncut_value: float | None = None

    def fill(self, estimate: Estimate) -> None:
        """With what an estimate says."""
        self.value, self.standard_error, self.verdict = estimate.value, estimate.standard_error, str(estimate.verdict)
        self.low, self.high = estimate.interval or (None, None)
        self.uncut_value = estimate.uncut_value
        self.remarks = "; ".join((*estimate.cautions, *estimate.notes))


COLUMNS = tuple(ComparedRow.__dataclass_fields__)


def has_closed_form(estimator: Estimator) -> bool:
    """True for an estimator with a saddle objective: `compare` solves it in closed form, and judges its Q."""
    return objective_of(estimator) is not None


def bellman_loss(problem: Problem, estimator: Estimator, judge: Judge) -> tuple[float, float]:
    """The held-out Bellman loss of an estimator's Q, and its noise."""
    (fitted,) = cross_fit(problem, [linear_form(objective_of(estimator), problem)])
    return judge(fitted.scores)


def mark_best(problem: Problem, rows: list[ComparedRow], solved: list[ComparedRow]) -> None:
    """Marks the most precise of those whose loss is not significantly larger than the smallest."""
    if problem.is_searched:
        # Only this row's interval and verdict allow for the search; a plain fit's standard error does not.
        if rows[0].value is not None:
            rows[0].choice = "use this"
        return
    # A value that no weighting of the logged rewards could have is not one to use.
    possible = [row for row in rows if row.value is not None and row.uncut_value is None]
    judged = [(row, row.bellman_loss, row.loss_noise or 0.0) for row in possible if row.bellman_loss is not None]
    if judged:
        _, least, noise = min(judged, key=lambda entry: entry[1])
        usable = [row for row, loss, own in judged if loss <= least + NOISE * np.hypot(noise, own)]
    else:
        # A log too thin to be split says nothing about the fit; a small standard error alone may be that of an
        # importance sampler none of whose episodes had any weight.
        usable = [row for row in possible if row.standard_error is not None and any(row is own for own in solved)]
    if usable:
        min(usable, key=lambda row: row.standard_error or np.inf).choice = "use this"


def as_frame(rows: Sequence[ComparedRow]) -> pd.DataFrame:
    """The rows as a table, the one to use first."""
    import pandas as pd

    order = sorted(rows, key=lambda row: (row.choice == "", row.value is None))
    return pd.DataFrame([asdict(row) for row in order])
