"""What an estimate reads of a scanned log, from the sums of the passes over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gradientdice.base.errors import InputError
from gradientdice.base.provenance import provenance
from gradientdice.estimators.answer import Answer, Estimator
from gradientdice.evaluation.assumptions import enough_observations, repeats, row_checks
from gradientdice.evaluation.baseline import BehaviorSide
from gradientdice.evaluation.difference import Compared
from gradientdice.evaluation.estimate import Estimate
from gradientdice.evaluation.facts import LogFacts
from gradientdice.evaluation.finish import assembled
from gradientdice.evaluation.interval import (
    ErrorShares,
    Intervals,
    answer_digest,
    interval_notes,
    room_beside,
    whole_interval,
)
from gradientdice.evaluation.scan.behavior import knows_behavior
from gradientdice.evaluation.scan.questions import Columns, Question, ScannedBehavior, ScannedEstimates, Scored
from gradientdice.functions import LinearFunctions
from gradientdice.log.scanning.passes import Sums
from gradientdice.problem.problem import Problem
from gradientdice.problem.scan.asked import Asked
from gradientdice.statistics.behavior import BehaviorValue
from gradientdice.statistics.checks import Check
from gradientdice.statistics.diagnostics import diagnose_mass
from gradientdice.statistics.footprint import Movement, mean_movements
from gradientdice.statistics.influence import Influence
from gradientdice.statistics.intervals import NormalInterval
from gradientdice.statistics.log_tests import LogTests
from gradientdice.statistics.mass import MassSums
from gradientdice.statistics.possible import PossibleRange
from gradientdice.statistics.scan.scorers import Scorer
from gradientdice.statistics.scan.seen import SeenBehavior
from gradientdice.statistics.shares import NOTHING, POWERS, JointShares, ShareSums
from gradientdice.statistics.sources import SummedSources
from gradientdice.statistics.units import KNOWN_STARTS


@dataclass(frozen=True, eq=False)
class Seen:
    """What the passes over a log saw for one answer.

    Attributes:
        sums: of the first pass.
        joint: the shares in the errors of all answers.
        column: which of them this is.
        alike: how many initial states there are, if they are few and alike; else None.
        mass: how the target's mass is spread over the rows.
        movements: where it moves.
        checks: of what the answer assumes about the log.
        notes: what the reader should know of how they were made.
        distances: how far the sample's answer is from those with other kinds of Q; see `Room`.
        undirected: the part of its misfit that has no sign.
    """

    sums: Sums
    joint: JointShares
    column: int
    alike: int | None
    mass: MassSums
    movements: tuple[Movement, ...]
    checks: tuple[Check, ...]
    notes: tuple[str, ...]
    distances: tuple[float, ...] = ()
    undirected: float = 0.0


def scanned_estimate(
    known: LogTests, question: Question, problem: Problem, answer: Answer, intervals: Intervals, seen: Seen
) -> Estimate:
    """An estimate from an answer and what the passes saw.

    Args:
        known: what is known of the log that was answered alone.
        question: what was asked.
        problem: what was answered: the counts of a table, else the sample.
        answer: with its evidence complete.
        intervals: how intervals are made.
        seen: what the passes saw.
    """
    asked, estimator = question.asked, question.estimator
    room = room_beside(known, problem, estimator.discount, answer, intervals.confidence, seen.alike)
    room = replace(room, distances=seen.distances, undirected=seen.undirected)
    if answer.influence is not None and problem.support is not None:
        room = replace(room, answer=answer_digest(problem, answer.influence))
    sources = SummedSources(answer.value, seen.joint, seen.column, room, asked.seed)
    whole = whole_interval(sources, intervals)
    notes = (*answer.notes, *interval_notes(sources, intervals), *seen.notes)
    shares = ErrorShares(sources.samples, seen.alike)
    observed = (*enough_observations(shares, whole.room), *repeats(known, problem, answer))
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
    seen = Seen(sums, JointShares(()), 0, None, mass, (), (), ())
    facts = _facts(asked, seen, estimator.discount, answer, intervals.confidence)
    made = provenance(seed=asked.seed, solver=solver, rows=facts.rows)
    return assembled(answer, None, facts, estimator, intervals, made)


def alike_starts(scorer: Scorer, place: int, first: Sums, scored: Scored) -> int | None:
    """How many initial states there are, if they are few and alike, as they may be by chance; else None.

    Args:
        scorer: of the answer.
        place: its place among the scorers.
        first: the sums of the first pass.
        scored: what the second gave.
    """
    if not scorer.has_starts:
        return None
    if len(scored.joint.kinds) > 1:
        shares = scored.joint.kinds[1].between(place + 1, NOTHING)
        return _few(len(shares), shares.high > shares.low)
    if scored.sums is None or "start_low" not in scored.sums:
        return None
    number = first["start_rows"].sum() if "start_rows" in first else first["initial_numbers"][1]
    return _few(int(number), bool(scored.sums["start_high"][place] > scored.sums["start_low"][place]))


def _few(count: int, varied: bool) -> int | None:
    return count if not varied and 1 < count < KNOWN_STARTS else None


def moved(scored: Scored, place: int, names: tuple[str, ...] | None) -> tuple[Movement, ...]:
    """The mean of every coordinate of the states, in the log and under the target; `names` are the columns' own."""
    sums = scored.sums or {}
    if f"moved.{place}" not in sums:
        return ()
    logged, target = (row[1:] / (row[0] or 1.0) for row in sums[f"moved.{place}"])
    return mean_movements("state", names, np.stack([logged, target]))


def with_behaviors(
    estimates: Sequence[Estimate], sides: Sequence[ScannedBehavior], columns: Columns, scored: Scored
) -> ScannedEstimates:
    """The estimates with their improvements over the behaviour, and the behaviour's own value at each discount."""
    behaviors = {
        side.discount: Compared(SummedSources(side.value, scored.joint, columns.places[side.discount], side.room))
        for side in sides
    }
    return ScannedEstimates([_improved(estimate, behaviors) for estimate in estimates], behaviors)


def _improved(estimate: Estimate, behaviors: dict[float, Compared]) -> Estimate:
    return replace(estimate, behavior_side=BehaviorSide.known(behaviors.get(estimate.discount)))


class SampleTests:
    """Tests of what is assumed about the log, on a sample of its rows; what looks at the log alone is done once."""

    def __init__(self, asked: Asked, functions: LinearFunctions) -> None:
        self.log = LogTests(asked.log.sample, asked.seed)
        self._functions = functions
        self._first: Problem | None = None

    def problem(self, asked: Asked) -> Problem:
        """The sample seen by a policy."""
        if self._first is None:
            self._first = Problem(asked.log.sample, asked.policy, self._functions, asked.seed)
        return self._first.with_policy(asked.policy)

    def found(self, question: Question, answer: Answer, scorer: Scorer) -> tuple[tuple[Check, ...], tuple[str, ...]]:
        """What they found, and a note that says how many rows they saw."""
        sample = question.asked.log.sample
        try:
            problem = self.problem(question.asked)
            scores = scorer.rows(sample)
            shares = Influence(scores.shares, None, scores.ratio, scores.residual)
            with_rows = replace(answer, influence=shares, ratio=scores.ratio)
            found = row_checks(self.log, problem, question.estimator, with_rows)
        except InputError as error:
            return (), (
                f"what is assumed about the log was not tested, since a sample of it cannot be evaluated: {error}",
            )
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
    if not knows_behavior(asked, sums, discount):
        return None
    seen = SeenBehavior.of(discount, sums)
    count, _, mass, earned_squares, products, mass_squares, _ = (float(part) for part in sums["behavior"])
    value = seen.value
    error = (earned_squares - 2 * value * products + value**2 * mass_squares) / mass**2
    shares = ShareSums(np.array([count, 0.0, max(error, 0.0), *np.zeros(POWERS - 2)]))
    interval = None if count < 2 else NormalInterval().interval(value, [shares], confidence, 0)
    return BehaviorValue(value, interval, seen.unseen)
