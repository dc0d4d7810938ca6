"""`evaluate`: from a log and a policy to an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, Unpack, overload

import numpy as np

from gradientdice.base.effort import Effort, require_effort
from gradientdice.base.errors import InputError
from gradientdice.default.automatic import Automatic
from gradientdice.default.search import Searching, searched_functions
from gradientdice.dice.saddle import SaddleObjective, Solver
from gradientdice.estimators.answer import Estimator
from gradientdice.evaluation.baseline import AskedLog
from gradientdice.evaluation.curve import DiscountCurve, require_discounts
from gradientdice.evaluation.estimate import Estimate
from gradientdice.evaluation.estimators import chosen_estimator
from gradientdice.evaluation.finish import finish
from gradientdice.evaluation.interval import Intervals
from gradientdice.evaluation.returned import checked_answer
from gradientdice.functions import Functions
from gradientdice.log.files.reading import as_path
from gradientdice.log.scanning.log import ScannedLog
from gradientdice.log.transitions import Transitions
from gradientdice.policies import Policy
from gradientdice.problem.entrance import explained_starts
from gradientdice.problem.problem import Problem
from gradientdice.statistics.intervals import IntervalMethod, SkewInterval, require_confidence, require_method


class _Options(TypedDict, total=False):
    """The options of `evaluate` that do not change what it returns."""

    functions: Functions | None
    solver: Solver | None
    interval: IntervalMethod | None
    confidence: float
    seed: int
    effort: Effort | str
    progress: bool | None
    checkpoint: str | Path | None


@overload
def evaluate(
    data: Transitions | ScannedLog,
    policy: Policy,
    estimator: Estimator | SaddleObjective | None = None,
    *,
    discount: float | None = None,
    **options: Unpack[_Options],
) -> Estimate: ...
@overload
def evaluate(
    data: Transitions | ScannedLog,
    policy: Policy,
    estimator: None = None,
    *,
    discount: Sequence[float],
    **options: Unpack[_Options],
) -> DiscountCurve: ...
def evaluate(
    data: Transitions | ScannedLog,
    policy: Policy,
    estimator: Estimator | SaddleObjective | None = None,
    *,
    discount: float | Sequence[float] | None = None,
    functions: Functions | None = None,
    solver: Solver | None = None,
    interval: IntervalMethod | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    effort: Effort | str = Effort.NORMAL,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
) -> Estimate | DiscountCurve:
    """How well would this policy do?

    Args:
        data: the log, in memory or scanned (`scan`): then in closed form, with a table or with given features; without
            any, the default learns from a sample of the log and scores every other row.
        policy: the policy to evaluate.
        estimator: by default `Automatic`: GradientDICE where the functions are known, else doubly robust with
            kernel features and several candidates for Q; any of
            ESTIMATORS, or an object of your own with `discount` and `answer(problem, solver)`.
        discount: γ, if no estimator is given; 1 is the average reward. A list of them shares the passes over the log
            and the learned model, and gives a `DiscountCurve`.
        functions: the function class; by default a table where states and actions are few whole numbers, else kernel
            features of many bandwidths, if the estimator needs any. `MLP` is for networks.
        solver: for saddle estimators, by default the closed form; for networks a cross-fitted doubly robust answer.
        interval: by default `SkewInterval`, which is Student's unless the error is skewed; or `NormalInterval`,
            `BootstrapInterval`, `EmpiricalLikelihood`.
        confidence: of the interval.
        seed: for whatever is random.
        effort: "quick", "normal" or "thorough": how much work the answer may take, where the estimator leaves it open.
        progress: None shows a progress bar on a terminal once the work has taken two seconds, True from the start,
            False never.
        checkpoint: with a stochastic solver, a folder to which the training writes as it goes and from which it goes
            on; with a scanned log the same for the passes over it.

    Returns:
        The value, its interval, diagnostics and a verdict; for several discounts a `DiscountCurve` of them.

    Raises:
        InputError: if the input cannot be used; the message says what would work.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = gd.mdp.boyan_chain("continuing"), np.tile([0.1, 0.9], (13, 1))
        >>> data = mdp.sample(20_000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
        >>> estimate = gd.evaluate(data, gd.TabularPolicy(target), discount=1.0)
        >>> low, high = estimate.interval
        >>> bool(low < mdp.value(target, 1.0) < high), str(estimate.verdict)
        (True, 'trust')
    """
    method = SkewInterval() if interval is None else require_method(interval)
    intervals = Intervals(method, require_confidence(confidence), required=interval is not None)
    effort = require_effort(effort)
    if isinstance(data, ScannedLog):
        # What passes over a log need is imported where there are passes.
        from gradientdice.evaluation.scan.evaluate import evaluate_scanned
        from gradientdice.evaluation.scan.questions import Question
        from gradientdice.evaluation.scan.rank import run_for
        from gradientdice.evaluation.scan.searched import fits_in_memory
        from gradientdice.problem.scan.asked import as_asked

        asked = as_asked(data, policy, functions, seed, run_for(checkpoint, progress), effort)
        if not fits_in_memory(asked):
            several = isinstance(discount, (Sequence, np.ndarray))
            estimators = _defaults(estimator, discount) if several else [chosen_estimator(estimator, discount)]
            questions = [Question(asked, chosen) for chosen in estimators]
            found = evaluate_scanned(questions, intervals, require_solver(solver)).estimates
            return DiscountCurve(tuple(found)) if several else found[0]
        # Features are searched for on the sample, which is the whole log: there are no passes to write down.
        data, checkpoint = data.sample, None
    solver = _with_checkpoint(require_solver(solver), checkpoint)
    if isinstance(discount, (Sequence, np.ndarray)):
        discounts = [chosen.discount for chosen in _defaults(estimator, discount)]
        problem = Problem(data, policy, functions, seed, Searching(discounts[0]), progress, effort)
        return DiscountCurve(tuple(evaluate_discounts(problem, discounts, intervals, solver)))
    chosen = chosen_estimator(estimator, discount)
    problem = Problem(data, policy, functions, seed, Searching(chosen.discount), progress, effort)
    return evaluate_problem(problem, chosen, intervals, solver)


def _defaults(estimator: object, discounts: Any) -> list[Automatic]:
    """The default at each of several discounts."""
    if estimator is not None:
        raise InputError("Several discounts are for the default: leave estimator= out, or give one discount.")
    return [Automatic(discount) for discount in require_discounts(discounts)]


def evaluate_problem(
    problem: Problem,
    estimator: Estimator,
    intervals: Intervals,
    solver: Solver | None = None,
    asked: AskedLog | None = None,
) -> Estimate:
    """`evaluate` for a problem that is built already, so that several answers share what it holds.

    Args:
        problem: the log and the policy.
        estimator: what answers.
        intervals: how intervals are made.
        solver: for saddle estimators.
        asked: what other answers from the log share; None for an answer alone.
    """
    with explained_starts(problem.data, problem.policy):
        answer = checked_answer(problem, estimator, estimator.answer(problem, solver))
        return finish(asked or AskedLog.of(problem), problem, estimator, answer, intervals, solver)


def evaluate_discounts(
    problem: Problem,
    discounts: Sequence[float],
    intervals: Intervals,
    solver: Solver | None = None,
    asked: AskedLog | None = None,
) -> list[Estimate]:
    """The default's estimates at several discounts: they share each pass over the log, and the learned model.

    The problem's own search, if it has one, is that of the first discount.
    """
    asked = asked or AskedLog.of(problem)
    if not problem.is_searched or solver is not None or len(discounts) == 1:
        return [evaluate_problem(problem, Automatic(discount), intervals, solver, asked) for discount in discounts]
    with explained_starts(problem.data, problem.policy):
        searches = searched_functions(problem, discounts)
    return [
        evaluate_problem(
            replace(problem, search=lambda _, own=search: own), Automatic(discount), intervals, asked=asked
        )
        for discount, search in zip(discounts, searches, strict=True)
    ]


def _with_checkpoint(solver: Any, checkpoint: str | Path | None) -> Any:
    """The solver, writing to a folder as it goes; an error if there is none that could."""
    if checkpoint is None:
        return solver
    if not hasattr(solver, "checkpoint"):
        raise InputError(
            "checkpoint= is for training by a stochastic solver and for scanned logs: give solver=PrimalDual(…) too, "
            "or leave it out."
        )
    return replace(solver, checkpoint=as_path(checkpoint))


def require_solver(solver: Any) -> Any:
    """The solver itself, or an error if it is none."""
    if isinstance(solver, type) or not (solver is None or isinstance(solver, Solver)):
        raise InputError(f"solver must be ClosedForm(), PrimalDual(…) or ProjectedPrimalDual(…), not {solver!r:.60}.")
    return solver
