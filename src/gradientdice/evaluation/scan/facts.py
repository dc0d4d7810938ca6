"""What an estimate reads of a scanned log, from the sums of the passes over it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gradientdice.data.scan.passes import Sums
from gradientdice.errors import InputError
from gradientdice.estimators.answer import Answer, Estimator
from gradientdice.evaluation.assumptions import ROW_TESTS, assumption_checks, enough_observations, repeats
from gradientdice.evaluation.estimate import Estimate
from gradientdice.evaluation.facts import LogFacts
from gradientdice.evaluation.finish import assembled
from gradientdice.evaluation.interval import ErrorShares, Intervals, interval_notes, room_beside, whole_interval
from gradientdice.functions import LinearFunctions
from gradientdice.inference.behavior import BehaviorValue
from gradientdice.inference.checks import Check
from gradientdice.inference.diagnostics import diagnose_mass
from gradientdice.inference.influence import Influence
from gradientdice.inference.intervals import NormalInterval
from gradientdice.inference.mass import MassSums
from gradientdice.inference.movement import Movement
from gradientdice.inference.possible import PossibleRange
from gradientdice.inference.scan.scorers import Scorer
from gradientdice.inference.share_sums import POWERS, ShareSums
from gradientdice.inference.sources import SummedSources
from gradientdice.inference.units import KNOWN_STARTS
from gradientdice.problem.problem import Problem
from gradientdice.problem.scan.asked import Asked
from gradientdice.provenance import provenance


@dataclass(frozen=True, eq=False)
class Seen:
    """What the passes over a log saw.

    Attributes:
        sums: of the first pass.
        shares: in the answer's error.
        mass: how the target's mass is spread over the rows.
        movements: where it moves.
        checks: of what the answer assumes about the log.
        notes: what the reader should know of how they were made.
    """

    sums: Sums
    shares: ErrorShares
    mass: MassSums
    movements: tuple[Movement, ...]
    checks: tuple[Check, ...]
    notes: tuple[str, ...]


def scanned_estimate(
    asked: Asked, problem: Problem, estimator: Estimator, answer: Answer, intervals: Intervals, seen: Seen
) -> Estimate:
    """An estimate from an answer and what the passes saw.

    Args:
        asked: what was asked.
        problem: what was answered: the counts of a table, else the sample.
        estimator: what answered.
        answer: with its evidence complete.
        intervals: how intervals are made.
        seen: what the passes saw.
    """
    room = room_beside(problem, estimator.discount, answer, intervals.confidence, seen.shares.alike)
    sources = SummedSources(answer.value, seen.shares.samples, room, asked.seed)
    whole = whole_interval(sources, intervals)
    notes = (*answer.notes, *interval_notes(sources, intervals), *seen.notes)
    observed = (*enough_observations(seen.shares, whole.room), *repeats(problem, estimator, answer))
    seen = replace(seen, checks=(*seen.checks, *observed))
    # What has one row per transition is not kept.
    answer = replace(
        answer, evidence=replace(answer.evidence, room=whole.room), notes=notes, ratio=None, influence=None
    )
    facts = _facts(asked, seen, estimator.discount, answer, intervals.confidence)
    made = provenance(seed=asked.seed, solver="ClosedForm()", rows=facts.rows)
    return assembled(answer, whole, facts, estimator, intervals, made)


def estimate_without_interval(
    asked: Asked, estimator: Estimator, answer: Answer, intervals: Intervals, found: tuple[Sums, MassSums, str]
) -> Estimate:
    """An estimate from an answer that has no influence values.

    Args:
        asked: what was asked.
        estimator: what answered.
        answer: with its evidence complete.
        intervals: what was asked for.
        found: the sums of a pass, how the target's mass is spread, and the solver in words.
    """
    sums, mass, solver = found
    seen = Seen(sums, ErrorShares([], None), mass, (), (), ())
    facts = _facts(asked, seen, estimator.discount, answer, intervals.confidence)
    made = provenance(seed=asked.seed, solver=solver, rows=facts.rows)
    return assembled(answer, None, facts, estimator, intervals, made)


def error_shares(shares: ShareSums | None, initial: ShareSums | None, first: Sums, second: Sums | None) -> ErrorShares:
    """The shares by kind, and whether the initial states are few and alike.

    Args:
        shares: of rows or episodes.
        initial: of initial states that are given; None if there are none, or they do not matter.
        first: the sums of the first pass.
        second: those of the second; None if there was none.
    """
    assert shares is not None
    if initial is not None:
        varied, count = initial.high > initial.low, len(initial)
        return ErrorShares([shares, initial] if varied else [shares], _alike(count, varied))
    if second is None or "start_low" not in second:
        return ErrorShares([shares], None)
    number = first["start_rows"].sum() if "start_rows" in first else first["initial_numbers"][1]
    return ErrorShares([shares], _alike(int(number), bool(second["start_high"][0] > second["start_low"][0])))


def _alike(count: int, varied: bool) -> int | None:
    return count if not varied and 1 < count < KNOWN_STARTS else None


def sample_checks(
    asked: Asked, functions: LinearFunctions, estimator: Estimator, answer: Answer, scorer: Scorer
) -> tuple[tuple[Check, ...], tuple[str, ...]]:
    """Tests of what is assumed about the log, on a sample of its rows; and a note that says so."""
    sample = asked.log.sample
    try:
        problem = Problem(sample, asked.policy, functions, asked.seed)
        scores = scorer.rows(sample)
        shares = Influence(scores.shares, None, scores.ratio, scores.residual)
        found = assumption_checks(problem, estimator, replace(answer, influence=shares, ratio=scores.ratio), ROW_TESTS)
    except InputError as error:
        return (), (f"what is assumed about the log was not tested, since a sample of it cannot be evaluated: {error}",)
    return found, (f"assumptions about the log were tested on {len(sample):,} of its rows",)


def _facts(asked: Asked, seen: Seen, discount: float, answer: Answer, confidence: float) -> LogFacts:
    sums = seen.sums
    weight, earned, squares, ended = (float(total) for total in sums["totals"][:4])
    low, high = float(sums["reward_low"][0]), float(sums["reward_high"][0])
    if discount < 1 and ended:
        low, high = min(low, 0.0), max(high, 0.0)
    mean = earned / weight
    return LogFacts(
        possible=PossibleRange(low, high),
        behavior=_behavior(asked, sums, discount, confidence),
        mean_reward=mean,
        reward_deviation=float(np.sqrt(max(0.0, squares / weight - mean**2))),
        rows=int(sums["rows"][0]),
        units=int(sums["units"][0]),
        diagnostics=diagnose_mass(seen.mass, answer.evidence, answer.solution),
        movements=seen.movements,
        checks=seen.checks,
    )


def _behavior(asked: Asked, sums: Sums, discount: float, confidence: float) -> BehaviorValue | None:
    """The behaviour's value, from sums over its episodes."""
    columns = asked.log.columns
    if "behavior" not in sums:
        return None
    if discount < 1 and not ("episodes" in columns and ("initial_states" in columns or asked.has_first_states)):
        return None
    count, earned, mass, earned_squares, products, mass_squares, started = (float(part) for part in sums["behavior"])
    value = earned / mass
    error = (earned_squares - 2 * value * products + value**2 * mass_squares) / mass**2
    shares = ShareSums(np.array([count, 0.0, max(error, 0.0), *np.zeros(POWERS - 2)]))
    interval = None if count < 2 else NormalInterval().interval(value, [shares], confidence, 0)
    return BehaviorValue(value, interval, 0.0 if discount == 1 else max(0.0, 1 - mass / started))
