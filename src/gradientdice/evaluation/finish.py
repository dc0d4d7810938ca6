"""From an answer to an `Estimate`: interval, diagnostics and verdict are made in one way for all estimators."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from gradientdice.errors import InputError
from gradientdice.estimators.answer import Answer, Estimator
from gradientdice.estimators.doubly_robust.search import FunctionSearch
from gradientdice.evaluation.assumptions import assumption_checks
from gradientdice.evaluation.estimate import Estimate
from gradientdice.inference.diagnostics import diagnose
from gradientdice.inference.evidence import Evidence
from gradientdice.inference.influence import Influence
from gradientdice.inference.intervals import IntervalMethod, NormalInterval, independent_shares, standard_error
from gradientdice.inference.misfit import bellman_misfit
from gradientdice.inference.movement import movements
from gradientdice.inference.possible import PossibleRange
from gradientdice.inference.unlogged import UnloggedError, repeats_of, unlogged_error
from gradientdice.problem.problem import Problem
from gradientdice.provenance import provenance

NO_INTERVAL = "there are no influence values, and so no interval; what would help: compare"


@dataclass(frozen=True)
class Intervals:
    """How intervals are made.

    Attributes:
        method: from influence values to an interval.
        confidence: of the interval.
        required: whether the user asked for this method, so that an answer without influence values is refused.
    """

    method: IntervalMethod = field(default_factory=NormalInterval)
    confidence: float = 0.95
    required: bool = False

    def of(self, value: float, influence: Influence, problem: Problem) -> tuple[tuple[float, float], float]:
        """The interval and the standard error."""
        samples = independent_shares(influence, problem.data)
        return self.method.interval(value, samples, self.confidence, problem.seed), standard_error(samples)


def finish(
    problem: Problem, estimator: Estimator, answer: Answer, intervals: Intervals, solver: object = None
) -> Estimate:
    """The answer with its interval, diagnostics and provenance."""
    answer = _with_evidence(problem, estimator, answer, intervals.confidence)
    interval = error = None
    if answer.influence is not None:
        interval, error = intervals.of(answer.value, answer.influence, problem)
        search = _search_behind(problem, answer)
        if search is not None:
            interval = _spanned(interval, search, intervals, problem)
        interval = _widened(interval, answer.evidence.allowance + answer.evidence.unlogged_error)
    elif intervals.required:
        raise InputError(
            f"interval= cannot be used: {answer.method or repr(estimator)} gives no influence values here. Leave it "
            "out, or use the closed form."
        )
    data, ratio, evidence = problem.data, answer.ratio, answer.evidence
    possible = PossibleRange.of(data, estimator.discount)
    outside = possible.check(answer.value)
    diagnostics = None
    if ratio is not None and evidence.mean_ratio is not None:
        diagnostics = diagnose(data, ratio, evidence, answer.solution, error)
    return Estimate(
        value=possible.cut(answer.value),
        interval=None if interval is None else possible.cut_interval(interval),
        standard_error=error,
        confidence=intervals.confidence,
        discount=estimator.discount,
        estimator=answer.method or repr(estimator),
        functions=answer.functions,
        ratio=ratio,
        behavior_mean=float(np.average(data.rewards, weights=data.row_weights)),
        diagnostics=diagnostics,
        status=answer.status,
        solution=answer.solution,
        num_rows=len(data),
        num_clusters=len(data) if data.episodes is None else len(np.unique(data.episodes)),
        movements=() if ratio is None else movements(data, ratio, data.row_weights),
        notes=answer.notes if outside is None else (*answer.notes, f"{outside.meaning}: it was cut to the nearest"),
        cautions=answer.cautions,
        provenance=provenance(seed=problem.seed, solver=repr(solver), rows=len(data)),
        assumptions=(*([] if outside is None else [outside]), *assumption_checks(problem, estimator, answer)),
        uncut_value=None if outside is None else answer.value,
    )


def _search_behind(problem: Problem, answer: Answer) -> FunctionSearch | None:
    """The search that chose the answer's functions, if one did."""
    if not (problem.is_searched and answer.functions):
        return None
    assert isinstance(problem.chosen, FunctionSearch)
    return problem.chosen


def _spanned(
    interval: tuple[float, float], search: FunctionSearch, intervals: Intervals, problem: Problem
) -> tuple[float, float]:
    """The interval widened to those of the candidates that are nearly as good."""
    low, high = interval
    for candidate in search.spanned:
        assert candidate.answer.influence is not None
        (other_low, other_high), _ = intervals.of(candidate.answer.value, candidate.answer.influence, problem)
        low, high = min(low, other_low), max(high, other_high)
    return low, high


def _widened(interval: tuple[float, float], margin: float) -> tuple[float, float]:
    low, high = interval
    return low - margin, high + margin


def _with_evidence(problem: Problem, estimator: Estimator, answer: Answer, confidence: float) -> Answer:
    """What only the front door knows: the misfit of the functions, unlogged steps, what the search found."""
    evidence, notes, cautions = answer.evidence, answer.notes, answer.cautions
    functions = answer.functions
    search = _search_behind(problem, answer)
    if search is not None:
        evidence = replace(evidence, allowance=search.allowance(confidence))
        notes, functions = (*notes, *search.notes(confidence)), repr(search.functions)
        if not evidence.bellman:
            cautions = (*cautions, "the features were searched for, and this estimator cannot test their fit")
    if evidence.bellman and evidence.misfit is None and answer.influence is not None and problem.support is None:
        evidence = replace(evidence, misfit=bellman_misfit(problem.rows, answer.influence, problem.seed))
    if problem.support is not None and functions:
        evidence, more, doubts = _with_unlogged(problem, estimator.discount, evidence, confidence)
        notes, cautions = (*notes, *more), (*cautions, *doubts)
    if answer.influence is None:
        cautions = (*cautions, NO_INTERVAL)
    return replace(answer, evidence=evidence, notes=notes, cautions=cautions, functions=functions)


def _with_unlogged(
    problem: Problem, discount: float, evidence: Evidence, confidence: float
) -> tuple[Evidence, tuple[str, ...], tuple[str, ...]]:
    """What the log does not contain of the policy's steps and their outcomes, as evidence, notes and cautions."""
    try:
        unlogged = problem.unlogged(discount)
        error = _unlogged_error(problem, discount, unlogged or 0.0, confidence)
    except InputError as refused:
        return evidence, (), (f"the share of unlogged steps is not known: {refused}",)
    notes = ()
    if unlogged:
        notes = (
            f"in {unlogged:.2%} of its steps the policy takes an action that is never logged in that state, or goes to "
            "a state without rows; the log's own actions are used instead",
        )
    return replace(evidence, unlogged=unlogged, unlogged_error=error.total), (*notes, *error.notes), ()


def _unlogged_error(problem: Problem, discount: float, unlogged: float, confidence: float) -> UnloggedError:
    assert problem.support is not None
    return unlogged_error(problem.tabular_solution(discount), unlogged, repeats_of(problem), confidence)
