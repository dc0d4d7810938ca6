"""What an estimate reads of its log, in memory or scanned: from here on the two are alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradientdice.estimators.answer import Answer
from gradientdice.evaluation.baseline import AskedLog
from gradientdice.problem.problem import Problem
from gradientdice.statistics.behavior import BehaviorValue
from gradientdice.statistics.checks import Check
from gradientdice.statistics.diagnostics import Diagnostics, diagnose
from gradientdice.statistics.footprint import Footprint, Movement, footprint, movements
from gradientdice.statistics.possible import PossibleRange


@dataclass(frozen=True, eq=False)
class LogFacts:
    """The log beside an answer.

    Attributes:
        possible: between which numbers every value lies.
        behavior: what the behaviour earned, from the steps that were seen alone; None where that is not known.
        mean_reward: the (weighted) mean of the rewards.
        reward_deviation: their standard deviation.
        rows: how many there are.
        units: how many of them, or of their episodes, are independent.
        diagnostics: how the ratio is spread over the rows; None without one.
        movements: where the target's mass moves.
        checks: of what the answer assumes about the log.
        footprint: which rows carry the answer; None without a ratio for each of them.
        notes: how the log was read.
    """

    possible: PossibleRange
    behavior: BehaviorValue | None
    mean_reward: float
    reward_deviation: float
    rows: int
    units: int
    diagnostics: Diagnostics | None
    movements: tuple[Movement, ...]
    checks: tuple[Check, ...]
    footprint: Footprint | None = None
    notes: tuple[str, ...] = ()


def facts_in_memory(
    asked: AskedLog, problem: Problem, discount: float, answer: Answer, confidence: float, checks: tuple[Check, ...]
) -> LogFacts:
    """The facts of a log that is in memory."""
    data, ratio, weights = problem.data, answer.ratio, problem.data.row_weights
    mean = float(np.average(data.rewards, weights=weights))
    diagnostics = None
    if ratio is not None and answer.evidence.mean_ratio is not None:
        diagnostics = diagnose(data, ratio, answer.evidence, answer.solution)
    return LogFacts(
        possible=asked.possible(discount),
        behavior=asked.seen_behavior(discount, confidence),
        mean_reward=mean,
        reward_deviation=float(np.sqrt(np.average((data.rewards - mean) ** 2, weights=weights))),
        rows=len(data),
        units=data.units.count,
        diagnostics=diagnostics,
        movements=() if ratio is None else movements(data, ratio, weights),
        checks=checks,
        footprint=None
        if ratio is None
        else footprint(problem, ratio, answer.influence, discount, answer.evidence.unlogged),
        notes=data.notes,
    )
