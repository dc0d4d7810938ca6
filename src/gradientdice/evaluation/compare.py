"""`compare`: several estimators on one log, side by side, ranked by one figure."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from gradientdice.data.transitions import Transitions
from gradientdice.effort import Effort, require_effort
from gradientdice.errors import InputError
from gradientdice.estimators.answer import Estimator
from gradientdice.estimators.doubly_robust.automatic import Automatic
from gradientdice.estimators.doubly_robust.cross_fit import FOLDS, cross_fit
from gradientdice.estimators.doubly_robust.drl import DRL
from gradientdice.estimators.doubly_robust.search import NOISE, FunctionSearch, searching
from gradientdice.estimators.saddle.estimator import Answering, linear_form
from gradientdice.estimators.saddle.gradient_dice import GradientDICE
from gradientdice.evaluation.estimate import Estimate
from gradientdice.evaluation.estimators import as_estimator
from gradientdice.evaluation.evaluate import evaluate_problem
from gradientdice.evaluation.interval import Intervals
from gradientdice.functions import Functions
from gradientdice.functions.mlp import MLP
from gradientdice.inference.bellman import bellman_judge
from gradientdice.inference.intervals import require_confidence
from gradientdice.inference.scores import HeldOut
from gradientdice.policies import Policy
from gradientdice.problem.problem import Problem
from gradientdice.progress import tracked
from gradientdice.solvers.saddle import SaddleObjective

if TYPE_CHECKING:
    import pandas as pd

Judge = Callable[[HeldOut], tuple[float, float]]


@dataclass
class _Row:
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


COLUMNS = tuple(_Row.__dataclass_fields__)


def compare(
    data: Transitions,
    policy: Policy,
    estimators: Sequence[Estimator | SaddleObjective],
    *,
    functions: Functions | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    effort: Effort | str = Effort.NORMAL,
) -> pd.DataFrame:
    """Evaluates a policy with several estimators in closed form, and says which of them to use.

    Those that the closed form solves are ranked by one figure, the held-out Bellman loss of the Q that goes with their
    ratio. Of those whose loss is not significantly larger than the smallest, the one with the smallest standard error
    is marked. A cross-fitted doubly robust answer from GradientDICE's own pair (τ, Q) competes with those given; where
    the functions are searched for, it is the answer that `evaluate` gives, and it is the one marked. Other estimators
    are shown beside them without a loss. An estimator that does not apply to this log, or has no closed form, gets a
    row that says why.

    Args:
        data: the log.
        policy: the policy to evaluate.
        estimators: what to compare; the first one's discount holds.
        functions: the function class; by default as in `evaluate`.
        confidence: of the intervals.
        seed: for whatever is random.
        effort: "quick", "normal" or "thorough", as in `evaluate`.

    Returns:
        One row per estimator, the one to use first: value, interval, standard error, loss, verdict, the seconds that it
        took, a note where it does not apply, and else what to know about it.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = gd.mdp.boyan_chain("episodic"), np.tile([0.1, 0.9], (13, 1))
        >>> data = mdp.sample(5000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
        >>> table = gd.compare(data, gd.TabularPolicy(target), [gd.GradientDICE(0.9), gd.PDIS(0.9)])
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
    search = searching(known[0].discount)
    problem = Problem(data, policy, functions, seed, search, effort=require_effort(effort))
    return compare_problem(problem, known, intervals)


def compare_problem(problem: Problem, estimators: Sequence[Estimator], intervals: Intervals) -> pd.DataFrame:
    """The same for a problem that is built already, so that `evaluate` and `compare` share what it holds."""
    import pandas as pd

    discount = estimators[0].discount
    own, judge = _Row(f"doubly robust GradientDICE(discount={discount:g}), cross-fitted"), None
    rows, solved = [own], []
    started = time.perf_counter()
    try:
        judge = bellman_judge(problem.fold_rows(FOLDS), problem.folds(FOLDS))
        _cross_fitted(own, problem, discount, intervals, judge)
        own.seconds = time.perf_counter() - started
    except InputError as error:
        # A log may be too small to leave a part of it out, or lack a pair once that is done.
        own.note, judge = f"not applicable: {error}", None
    for estimator in tracked("comparing estimators", estimators, problem.progress):
        row = _Row(repr(estimator))
        rows.append(row)
        started = time.perf_counter()
        if estimator.discount != discount:
            row.note = f"not applicable: its discount is {estimator.discount:g}, and that of the first {discount:g}"
            continue
        try:
            row.fill(evaluate_problem(problem, estimator, intervals))
            row.seconds = time.perf_counter() - started
            if _has_closed_form(estimator):
                solved.append(row)
                if judge is not None:
                    row.bellman_loss, row.loss_noise = _loss(problem, estimator, judge)
        except InputError as error:
            row.note = f"not applicable: {error}"
    _rank(problem, rows, solved)
    order = sorted(rows, key=lambda row: (row.choice == "", row.value is None))
    return pd.DataFrame([asdict(row) for row in order])


def _cross_fitted(row: _Row, problem: Problem, discount: float, intervals: Intervals, judge: Judge) -> None:
    """Fills in the doubly robust answer: `evaluate`'s own where the functions are searched for."""
    if problem.is_searched:
        row.fill(evaluate_problem(problem, Automatic(discount), intervals))
        assert isinstance(problem.chosen, FunctionSearch)
        row.bellman_loss, row.loss_noise = problem.chosen.chosen.loss, problem.chosen.chosen.noise
        return
    row.fill(evaluate_problem(problem, DRL(discount, FOLDS), intervals))
    row.bellman_loss, row.loss_noise = _loss(problem, GradientDICE(discount), judge)


def _has_closed_form(estimator: Estimator) -> bool:
    return isinstance(estimator, (SaddleObjective, Answering))


def _loss(problem: Problem, estimator: Estimator, judge: Judge) -> tuple[float, float]:
    """The held-out Bellman loss of an estimator's Q, and its noise."""
    objective = estimator.objective if isinstance(estimator, Answering) else estimator
    (fitted,) = cross_fit(problem, [linear_form(objective, problem)])
    return judge(fitted.scores)


def _rank(problem: Problem, rows: list[_Row], solved: list[_Row]) -> None:
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
