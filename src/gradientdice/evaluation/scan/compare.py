"""`compare` for a scanned log: values and intervals from all rows, losses of fits to a sample of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradientdice.base.errors import InputError
from gradientdice.default.automatic import Automatic
from gradientdice.estimators.answer import Estimator
from gradientdice.estimators.doubly_robust.cross_fit import FOLDS
from gradientdice.estimators.saddle.estimator import linear_form, objective_of
from gradientdice.evaluation.comparison import (
    ComparedRow,
    Judge,
    as_frame,
    bellman_loss,
    has_closed_form,
    mark_best,
)
from gradientdice.evaluation.interval import Intervals
from gradientdice.evaluation.scan.evaluate import evaluate_scanned, require_scannable
from gradientdice.evaluation.scan.questions import Question
from gradientdice.evaluation.scan.searched import require_default
from gradientdice.problem.problem import Problem
from gradientdice.problem.scan.asked import Asked
from gradientdice.statistics.bellman import bellman_judge

if TYPE_CHECKING:
    import pandas as pd


def compare_scanned(asked: Asked, estimators: Sequence[Estimator], intervals: Intervals) -> pd.DataFrame:
    """One row per estimator, the one to use first; those that need the log in memory get a row that says so."""
    discount, sample = estimators[0].discount, Problem(asked.log.sample, asked.policy, asked.functions, asked.seed)
    rows, taken = [], []
    if sample.is_searched:
        rows.append(ComparedRow(f"doubly robust GradientDICE(discount={discount:g}), cross-fitted"))
        taken.append((rows[0], Question(asked, Automatic(discount))))
    for estimator in estimators:
        row = ComparedRow(repr(estimator))
        rows.append(row)
        try:
            _require_applicable(estimator, discount, sample)
            taken.append((row, Question(asked, estimator)))
        except InputError as error:
            row.note = f"not applicable: {error}"
    solved = [pair for pair in _filled(taken, intervals) if has_closed_form(pair[1].estimator)]
    judge = _judge(sample) if solved else None
    for row, question in solved:
        if judge is not None:
            row.bellman_loss, row.loss_noise = bellman_loss(sample, question.estimator, judge)
    mark_best(sample, rows, [row for row, _ in solved])
    return as_frame(rows)


def _require_applicable(estimator: Estimator, discount: float, sample: Problem) -> None:
    """An error, before any pass over the log, if an estimator cannot answer."""
    if estimator.discount != discount:
        raise InputError(f"its discount is {estimator.discount:g}, and that of the first {discount:g}")
    require_scannable(estimator)
    if sample.is_searched:
        require_default(estimator)
    elif has_closed_form(estimator):
        linear_form(objective_of(estimator), sample)


def _filled(taken: Sequence[tuple[ComparedRow, Question]], intervals: Intervals) -> list[tuple[ComparedRow, Question]]:
    """The rows that have an answer: all in the same passes; one by one if an estimator does not apply."""
    if not taken:
        return []
    started = time.perf_counter()
    try:
        found = evaluate_scanned([question for _, question in taken], intervals).estimates
    except InputError as error:
        if len(taken) == 1:
            taken[0][0].note = f"not applicable: {error}"
            return []
        return [pair for each in taken for pair in _filled([each], intervals)]
    for (row, _), estimate in zip(taken, found, strict=True):
        row.fill(estimate)
        row.seconds = (time.perf_counter() - started) / len(taken)
    return list(taken)


def _judge(sample: Problem) -> Judge | None:
    """What gives a fit to the sample its loss; None where the sample cannot be split."""
    try:
        return bellman_judge(sample.fold_rows(FOLDS), sample.folds(FOLDS))
    except InputError:
        return None
