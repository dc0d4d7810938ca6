"""From an answer to an `Estimate`: interval, diagnostics and verdict are made in one way for all estimators."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from gradientdice.errors import InputError
from gradientdice.estimators.answer import Answer, Estimator
from gradientdice.estimators.doubly_robust.search import FunctionSearch
from gradientdice.evaluation.assumptions import assumption_checks
from gradientdice.evaluation.estimate import Estimate
from gradientdice.inference.diagnostics import diagnose, is_possible
from gradientdice.inference.evidence import Evidence
from gradientdice.inference.influence import Influence
from gradientdice.inference.intervals import IntervalMethod, standard_error
from gradientdice.inference.misfit import bellman_misfit
from gradientdice.inference.movement import movements
from gradientdice.inference.skew_interval import SkewInterval
from gradientdice.inference.small_samples import interval_shares
from gradientdice.inference.tails import skewness
from gradientdice.inference.units import alike_starts, unseen_starts
from gradientdice.problem.problem import Problem
from gradientdice.provenance import provenance

OUTSIDE = (
    "the value lies outside the range of the logged rewards, where no mean of them can be; what would help: more data, "
    "better features, or compare"
)
NO_INTERVAL = "there are no influence values, and so no interval; what would help: compare"


@dataclass(frozen=True)
class Intervals:
    """How intervals are made.

    Attributes:
        method: from influence values to an interval.
        confidence: of the interval.
        required: whether the user asked for this method, so that an answer without influence values is refused.
    """

    method: IntervalMethod = field(default_factory=SkewInterval)
    confidence: float = 0.95
    required: bool = False

    def of(self, value: float, influence: Influence, problem: Problem) -> tuple[tuple[float, float], float]:
        """The interval and the standard error."""
        samples = interval_shares(influence, problem)
        return self.method.interval(value, samples, self.confidence, problem.seed), standard_error(samples)


def finish(
    problem: Problem, estimator: Estimator, answer: Answer, intervals: Intervals, solver: object = None
) -> Estimate:
    """The answer with its interval, diagnostics and provenance."""
    answer = _with_evidence(problem, estimator, answer)
    interval = error = None
    if answer.influence is not None:
        interval, error = intervals.of(answer.value, answer.influence, problem)
        search = _search_behind(problem, answer)
        if search is not None:
            own, interval = interval, _spanned(interval, search, intervals, problem)
            room = min(own[0] - interval[0], interval[1] - own[1])
            answer = replace(answer, evidence=replace(answer.evidence, room=room))
        assert answer.influence is not None
        interval, more = _with_unseen_starts(interval, problem, estimator.discount, answer.influence, intervals)
        answer = replace(answer, notes=(*answer.notes, *_skew_notes(problem, answer.influence, intervals), *more))
    elif intervals.required:
        raise InputError(
            f"interval= cannot be used: {answer.method or repr(estimator)} gives no influence values here. Leave it "
            "out, or use the closed form."
        )
    data, ratio, evidence = problem.data, answer.ratio, answer.evidence
    diagnostics = None
    if ratio is not None and evidence.mean_ratio is not None:
        diagnostics = diagnose(data, ratio, evidence, answer.solution, error)
    return Estimate(
        value=answer.value,
        interval=interval,
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
        notes=answer.notes,
        cautions=answer.cautions,
        provenance=provenance(seed=problem.seed, solver=repr(solver), rows=len(data)),
        assumptions=assumption_checks(problem, estimator, answer),
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
    """The interval widened to the candidates that are nearly as good, and by the allowance for misfit."""
    low, high = interval
    for candidate in search.spanned:
        assert candidate.answer.influence is not None
        (other_low, other_high), _ = intervals.of(candidate.answer.value, candidate.answer.influence, problem)
        low, high = min(low, other_low), max(high, other_high)
    return low - search.allowance, high + search.allowance


def _skew_notes(problem: Problem, influence: Influence, intervals: Intervals) -> tuple[str, ...]:
    """That the interval is longer on one side, if it is."""
    samples = interval_shares(influence, problem)
    if not (isinstance(intervals.method, SkewInterval) and intervals.method.applies(samples)):
        return ()
    side = "upper" if skewness(samples) > 0 else "lower"
    return (
        f"a few rows have large shares in the error (skewness {skewness(samples):.2g}), so that the interval's {side} "
        "end is further out than Student's (Hall's transformation)",
    )


def _with_unseen_starts(
    interval: tuple[float, float], problem: Problem, discount: float, influence: Influence, intervals: Intervals
) -> tuple[tuple[float, float], tuple[str, ...]]:
    """The interval with room for starts that a few initial states, all alike, do not show; and a note.

    With a table, they are worth no more than the best of its states and no less than the worst.
    """
    count = alike_starts(influence)
    if count is None or problem.support is None:
        return interval, ()
    values, here = problem.tabular_solution(discount).values, problem.tabular_solution(discount).initial_values
    if here is None or discount == 1:
        return interval, ()
    unseen = unseen_starts(count, intervals.confidence)
    low, high = (float((1 - discount) * unseen * (end - here[0])) for end in (values.min(), values.max()))
    note = (
        f"the {count} initial states are all alike, as they may be by chance: the interval has room for other starts "
        f"with a probability of up to {unseen:.2g}"
    )
    return (interval[0] + min(low, 0.0), interval[1] + max(high, 0.0)), (note,)


def _with_evidence(problem: Problem, estimator: Estimator, answer: Answer) -> Answer:
    """What only the front door knows: the misfit of the functions, unlogged steps, what the search found."""
    evidence, notes, cautions = answer.evidence, answer.notes, answer.cautions
    functions = answer.functions
    search = _search_behind(problem, answer)
    if search is not None:
        evidence = replace(evidence, allowance=search.allowance)
        notes, functions = (*notes, *search.notes), repr(search.functions)
        if not evidence.bellman:
            cautions = (*cautions, "the features were searched for, and this estimator cannot test their fit")
    if evidence.bellman and evidence.misfit is None and answer.influence is not None and problem.support is None:
        evidence = replace(evidence, misfit=bellman_misfit(problem.rows, answer.influence, problem.seed))
    if problem.support is not None and functions:
        evidence, more, doubts = _with_unlogged(problem, estimator.discount, evidence)
        notes, cautions = (*notes, *more), (*cautions, *doubts)
    if answer.influence is None:
        cautions = (*cautions, NO_INTERVAL)
    if not is_possible(answer.value, problem.data):
        cautions = (*cautions, OUTSIDE)
    return replace(answer, evidence=evidence, notes=notes, cautions=cautions, functions=functions)


def _with_unlogged(
    problem: Problem, discount: float, evidence: Evidence
) -> tuple[Evidence, tuple[str, ...], tuple[str, ...]]:
    """The share of the policy's steps that the log does not contain, as evidence, notes and cautions."""
    try:
        unlogged = problem.unlogged(discount)
    except InputError as error:
        return evidence, (), (f"the share of unlogged steps is not known: {error}",)
    notes = ()
    if unlogged:
        notes = (
            f"in {unlogged:.2%} of its steps the policy takes an action that is never logged in that state, or goes to "
            "a state without rows; the log's own actions are used instead, and the interval does not cover that",
        )
    return replace(evidence, unlogged=unlogged), notes, ()
