"""From an answer to an `Estimate`: interval, diagnostics and verdict are made in one way for all estimators."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gradientdice.base.errors import InputError
from gradientdice.base.provenance import provenance
from gradientdice.default.search import FunctionSearch
from gradientdice.estimators.answer import Answer, Estimator
from gradientdice.evaluation.assumptions import assumption_checks
from gradientdice.evaluation.baseline import AskedLog
from gradientdice.evaluation.estimate import Estimate
from gradientdice.evaluation.facts import LogFacts, facts_in_memory
from gradientdice.evaluation.interval import (
    ErrorShares,
    Intervals,
    WholeInterval,
    error_sources,
    interval_notes,
    whole_interval,
)
from gradientdice.problem.problem import Problem
from gradientdice.statistics.bellman import bellman_misfit
from gradientdice.statistics.checks import Check
from gradientdice.statistics.evidence import Evidence
from gradientdice.statistics.log_tests import LogTests
from gradientdice.statistics.units import alike_starts, width_checks
from gradientdice.statistics.unlogged import UnloggedError, unseen_outcomes

NO_INTERVAL = "there are no influence values, and so no interval; what would help: compare"


def finish(
    asked: AskedLog,
    problem: Problem,
    estimator: Estimator,
    answer: Answer,
    intervals: Intervals,
    solver: object = None,
) -> Estimate:
    """The answer with its interval, diagnostics and provenance."""
    answer = with_evidence(asked.tests, problem, estimator, answer, intervals.confidence)
    whole, shares = None, None
    if answer.influence is not None:
        search = _search_behind(problem, answer)
        sources = error_sources(asked.tests, problem, estimator.discount, answer, intervals, search)
        whole, shares = whole_interval(sources, intervals), ErrorShares(sources.samples, alike_starts(answer.influence))
        known = replace(answer.evidence, room=whole.room)
        answer = replace(answer, evidence=known, notes=(*answer.notes, *interval_notes(sources, intervals)))
    elif intervals.required:
        raise InputError(
            f"interval= cannot be used: {answer.method or repr(estimator)} gives no influence values here. Leave it "
            "out, or use the closed form."
        )
    checks = assumption_checks(asked.tests, problem, estimator, answer, shares)
    facts = facts_in_memory(asked, problem, estimator.discount, answer, intervals.confidence, checks)
    made = provenance(seed=problem.seed, solver=repr(solver), rows=facts.rows)
    estimate = assembled(answer, whole, facts, estimator, intervals, made)
    return replace(estimate, behavior_side=asked.behavior_side(estimator.discount))


def assembled(
    answer: Answer,
    whole: WholeInterval | None,
    facts: LogFacts,
    estimator: Estimator,
    intervals: Intervals,
    made: dict[str, Any],
) -> Estimate:
    """An estimate from its parts, for a log in memory and for a scanned one.

    Args:
        answer: with its evidence complete.
        whole: its interval; None without influence values.
        facts: the log beside it.
        estimator: what answered.
        intervals: how the interval was made.
        made: versions and settings.
    """
    possible = facts.possible
    outside = possible.check(answer.value)
    return Estimate(
        value=possible.cut(answer.value),
        interval=None if whole is None else possible.cut_interval(whole.ends),
        standard_error=None if whole is None else whole.standard_error,
        sampling_error=None if whole is None else whole.sampling_error,
        confidence=intervals.confidence,
        discount=estimator.discount,
        estimator=answer.method or repr(estimator),
        functions=answer.functions,
        ratio=answer.ratio,
        behavior_seen=facts.behavior,
        behavior_mean=facts.mean_reward,
        diagnostics=facts.diagnostics,
        status=answer.status,
        solution=answer.solution,
        num_rows=facts.rows,
        num_clusters=facts.units,
        movements=facts.movements,
        notes=(
            *facts.notes,
            *answer.notes,
            *(() if outside is None else (f"{outside.meaning}: it was cut to the nearest",)),
        ),
        cautions=answer.cautions,
        provenance=made,
        further_checks=(
            *([] if outside is None else [outside]),
            *_width(answer, whole, facts),
            *facts.checks,
        ),
        uncut_value=None if outside is None else answer.value,
        influence=answer.influence,
        sources=None if whole is None else replace(whole.sources, value=possible.cut(answer.value)),
        intervals=intervals,
        possible=possible,
        footprint=facts.footprint,
    )


def _width(answer: Answer, whole: WholeInterval | None, facts: LogFacts) -> list[Check]:
    """Whether the interval is narrow enough to decide on, if there is one."""
    if whole is None:
        return []
    half = (whole.ends[1] - whole.ends[0]) / 2
    return list(width_checks(facts.reward_deviation, answer.value, half, facts.possible, facts.behavior))


def _search_behind(problem: Problem, answer: Answer) -> FunctionSearch | None:
    """The search that chose the answer's functions, if one did."""
    if not (problem.is_searched and answer.functions):
        return None
    assert isinstance(problem.chosen, FunctionSearch)
    return problem.chosen


def with_evidence(log: LogTests, problem: Problem, estimator: Estimator, answer: Answer, confidence: float) -> Answer:
    """What only the front door knows: the misfit of the functions, unlogged steps, what the search found."""
    evidence, notes, cautions = answer.evidence, answer.notes, answer.cautions
    functions = answer.functions
    search = _search_behind(problem, answer)
    if search is not None:
        evidence = replace(evidence, allowance=search.allowance(confidence))
        if answer.of_search:
            notes = (*notes, *search.notes(confidence))
        else:
            notes, functions = (*notes, *search.notes_for_others(confidence)), repr(search.functions)
        if not evidence.bellman:
            cautions = (*cautions, "the features were searched for, and this estimator cannot test their fit")
    if evidence.bellman and evidence.misfit is None and answer.influence is not None and problem.support is None:
        evidence = replace(evidence, misfit=bellman_misfit(problem.rows, answer.influence, problem.seed))
    if problem.support is not None and functions:
        evidence, more, doubts = _with_unlogged(log, problem, estimator.discount, evidence, confidence)
        notes, cautions = (*notes, *more), (*cautions, *doubts)
    if answer.influence is None:
        cautions = (*cautions, NO_INTERVAL)
    return replace(answer, evidence=evidence, notes=notes, cautions=cautions, functions=functions)


def _with_unlogged(
    log: LogTests, problem: Problem, discount: float, evidence: Evidence, confidence: float
) -> tuple[Evidence, tuple[str, ...], tuple[str, ...]]:
    """What the log does not contain of the policy's steps and their outcomes, as evidence, notes and cautions."""
    try:
        unlogged = problem.unlogged(discount)
        error = _unlogged_error(log, problem, discount, unlogged or 0.0, confidence)
    except InputError as refused:
        return evidence, (), (f"the share of unlogged steps is not known: {refused}",)
    notes = ()
    if unlogged:
        notes = (
            f"in {unlogged:.2%} of its steps the policy takes an action that is never logged in that state, or goes to "
            "a state without rows; the log's own actions are used instead",
        )
    return replace(evidence, unlogged=unlogged, unlogged_error=error.total), (*notes, *error.notes), ()


def _unlogged_error(
    log: LogTests, problem: Problem, discount: float, unlogged: float, confidence: float
) -> UnloggedError:
    assert problem.support is not None
    solved = problem.tabular_solution(discount)
    outcomes = unseen_outcomes(solved, log.repeats).error(confidence)
    return UnloggedError(unlogged * solved.spread, outcomes)
