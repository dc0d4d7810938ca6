"""`compare`: several estimators on one log, side by side, ranked by one figure."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gradientdice.base.effort import Effort, require_effort
from gradientdice.base.errors import InputError
from gradientdice.base.progress import tracked
from gradientdice.default.automatic import Automatic
from gradientdice.default.search import FunctionSearch, Searching
from gradientdice.dice.saddle import SaddleObjective
from gradientdice.estimators.answer import Estimator
from gradientdice.estimators.doubly_robust.cross_fit import FOLDS
from gradientdice.estimators.doubly_robust.drl import DRL
from gradientdice.estimators.saddle.gradient_dice import GradientDICE
from gradientdice.evaluation.baseline import AskedLog
from gradientdice.evaluation.comparison import (
    ComparedRow,
    Judge,
    as_frame,
    bellman_loss,
    has_closed_form,
    mark_best,
)
from gradientdice.evaluation.estimators import as_estimator
from gradientdice.evaluation.evaluate import evaluate_problem
from gradientdice.evaluation.interval import Intervals
from gradientdice.evaluation.rank import refuse_checkpoint
from gradientdice.functions import Functions
from gradientdice.functions.mlp import MLP
from gradientdice.log.scanning.log import ScannedLog
from gradientdice.log.transitions import Transitions
from gradientdice.policies import Policy
from gradientdice.problem.problem import Problem
from gradientdice.statistics.bellman import bellman_judge
from gradientdice.statistics.intervals import require_confidence

if TYPE_CHECKING:
    import pandas as pd


def compare(
    data: Transitions | ScannedLog,
    policy: Policy,
    estimators: Sequence[Estimator | SaddleObjective],
    *,
    functions: Functions | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    effort: Effort | str = Effort.NORMAL,
    checkpoint: str | Path | None = None,
) -> pd.DataFrame:
    """Evaluates a policy with several estimators in closed form, and says which of them to use.

    Those that the closed form solves are ranked by one figure, the held-out Bellman loss of the Q that goes with their
    ratio. Of those whose loss is not significantly larger than the smallest, the one with the smallest standard error
    is marked. A cross-fitted doubly robust answer from GradientDICE's own pair (τ, Q) competes with those given; where
    the functions are searched for, it is the answer that `evaluate` gives, and it is the one marked. Other estimators
    are shown beside them without a loss. An estimator that does not apply to this log, or has no closed form, gets a
    row that says why.

    Args:
        data: the log, in memory or scanned (`scan`): the estimators then share each pass over it, and their losses
            are those of fits to `data.sample`.
        policy: the policy to evaluate.
        estimators: what to compare; the first one's discount holds.
        functions: the function class; by default as in `evaluate`.
        confidence: of the intervals.
        seed: for whatever is random.
        effort: "quick", "normal" or "thorough", as in `evaluate`.
        checkpoint: as for `rank`.

    Returns:
        One row per estimator, the one to use first: value, interval, standard error, loss, verdict, the seconds that it
        took, a note where it does not apply, and else what to know about it.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = gd.mdp.boyan_chain("episodic"), np.tile([0.1, 0.9], (13, 1))
        >>> data = mdp.sample(5000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
        >>> table = gd.compare(
        ...     data, gd.TabularPolicy(target), [gd.GradientDICE(0.9), gd.PDIS(0.9)]
        ... )
        >>> table["choice"].tolist()
        ['use this', '', '']
        >>> table["note"].str[:14].tolist()
        ['', '', 'not applicable']
    """
    intervals = Intervals(confidence=require_confidence(confidence))
    if not isinstance(estimators, Sequence) or isinstance(estimators, str) or not estimators:
        raise InputError("compare needs a list of at least one estimator, such as [GradientDICE(0.9), LSTDQ(0.9)].")
    known = [as_estimator(estimator) for estimator in estimators]
    if isinstance(functions, MLP):
        raise InputError("compare is for linear functions, which have closed forms: evaluate networks one by one.")
    if isinstance(data, ScannedLog):
        from gradientdice.evaluation.scan.compare import compare_scanned
        from gradientdice.evaluation.scan.rank import run_for
        from gradientdice.evaluation.scan.searched import fits_in_memory
        from gradientdice.problem.scan.asked import as_asked

        asked = as_asked(data, policy, functions, seed, run_for(checkpoint, None), require_effort(effort))
        if not fits_in_memory(asked):
            return compare_scanned(asked, known, intervals)
        data = data.sample
    else:
        refuse_checkpoint(checkpoint)
    search = Searching(known[0].discount)
    problem = Problem(data, policy, functions, seed, search, effort=require_effort(effort))
    return compare_problem(problem, known, intervals)


def compare_problem(problem: Problem, estimators: Sequence[Estimator], intervals: Intervals) -> pd.DataFrame:
    """The same for a problem that is built already, so that `evaluate` and `compare` share what it holds."""
    discount = estimators[0].discount
    asked = AskedLog.of(problem)
    own, judge = ComparedRow(f"doubly robust GradientDICE(discount={discount:g}), cross-fitted"), None
    rows, solved = [own], []
    started = time.perf_counter()
    try:
        judge = bellman_judge(problem.fold_rows(FOLDS), problem.folds(FOLDS))
        _cross_fitted(own, problem, discount, intervals, judge, asked)
        own.seconds = time.perf_counter() - started
    except InputError as error:
        # A log may be too small to leave a part of it out, or lack a pair once that is done.
        own.note, judge = f"not applicable: {error}", None
    for estimator in tracked("comparing estimators", estimators, problem.progress):
        row = ComparedRow(repr(estimator))
        rows.append(row)
        started = time.perf_counter()
        if estimator.discount != discount:
            row.note = f"not applicable: its discount is {estimator.discount:g}, and that of the first {discount:g}"
            continue
        try:
            row.fill(evaluate_problem(problem, estimator, intervals, asked=asked))
            row.seconds = time.perf_counter() - started
            if has_closed_form(estimator):
                solved.append(row)
                if judge is not None:
                    row.bellman_loss, row.loss_noise = bellman_loss(problem, estimator, judge)
        except InputError as error:
            row.note = f"not applicable: {error}"
    mark_best(problem, rows, solved)
    return as_frame(rows)


def _cross_fitted(
    row: ComparedRow, problem: Problem, discount: float, intervals: Intervals, judge: Judge, asked: AskedLog
) -> None:
    """Fills in the doubly robust answer: `evaluate`'s own where the functions are searched for."""
    if problem.is_searched:
        row.fill(evaluate_problem(problem, Automatic(discount), intervals, asked=asked))
        assert isinstance(problem.chosen, FunctionSearch)
        row.bellman_loss, row.loss_noise = problem.chosen.chosen.loss, problem.chosen.chosen.noise
        return
    row.fill(evaluate_problem(problem, DRL(discount, FOLDS), intervals, asked=asked))
    row.bellman_loss, row.loss_noise = bellman_loss(problem, GradientDICE(discount), judge)
