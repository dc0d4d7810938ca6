"""A table from a scanned log: its counts are a log with weights, which is answered as any log in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gradientdice.estimators.answer import Answer
from gradientdice.evaluation.finish import with_evidence
from gradientdice.evaluation.interval import Intervals
from gradientdice.evaluation.named import named
from gradientdice.evaluation.returned import checked_answer
from gradientdice.evaluation.scan.behavior import CountedTable, behavior_side
from gradientdice.evaluation.scan.facts import SampleTests, Seen, alike_starts, scanned_estimate, with_behaviors
from gradientdice.evaluation.scan.questions import Columns, Question, ScannedBehavior, ScannedEstimates, Scored
from gradientdice.evaluation.scan.score import scored_by_pass
from gradientdice.functions import Tabular
from gradientdice.log.scanning.passes import Sums
from gradientdice.policies import Policy, SamplingPolicy, TabularPolicy
from gradientdice.problem.entrance import explained_starts
from gradientdice.problem.problem import LARGEST_TABLE, Problem
from gradientdice.problem.scan.asked import Asked, largest_reward, share_unit
from gradientdice.problem.scan.cell_counts import usual_rows
from gradientdice.problem.scan.cells import CellCodes
from gradientdice.problem.scan.counted import CountedLog
from gradientdice.problem.scan.counts import CountPass, counted_log
from gradientdice.problem.scan.extent import ExtentPass
from gradientdice.problem.scan.first import first_sums
from gradientdice.statistics.footprint import movements
from gradientdice.statistics.log_tests import LogTests
from gradientdice.statistics.scan.counted_scores import counted_pairs, counted_shares
from gradientdice.statistics.scan.pair_pass import PairPass, pair_sums
from gradientdice.statistics.scan.scorers import TableScorer
from gradientdice.statistics.unlogged import Repeats


def table_of(asked: Asked) -> Tabular | None:
    """A table where states and actions are few whole numbers, else None."""
    policy, sample = asked.policy, asked.log.sample
    if asked.functions is not None:
        return None
    if isinstance(policy, TabularPolicy):
        return Tabular(*policy.probabilities.shape)
    whole = sample.states.ndim == 1 and sample.states.dtype.kind in "iu"
    if isinstance(policy, SamplingPolicy) or not whole:
        return None
    extent = asked.run.sums(asked.log, ExtentPass())
    table = Tabular(int(extent["highest"][0]) + 1, policy.num_actions)
    return table if table.num_features <= LARGEST_TABLE else None


@dataclass(frozen=True, eq=False)
class _Answered:
    """The answer to a question from counts.

    Attributes:
        problem: the counts seen by the policy.
        answer: with its evidence complete.
        scorer: from rows to their shares in its error.
    """

    problem: Problem
    answer: Answer
    scorer: TableScorer


def table_estimates(questions: Sequence[Question], table: Tabular, intervals: Intervals) -> ScannedEstimates:
    """The estimates of a table from counts, which all policies and discounts share."""
    asked, starts = questions[0].asked, questions[0].asked.has_first_states
    discounts = list(dict.fromkeys(question.discount for question in questions))
    (by_discount,) = first_sums(
        asked, [lambda spill, discount: CountPass(spill, discount, starts, table=table)], discounts
    )
    sums = by_discount[discounts[0]]
    counted = counted_log(table, sums)
    largest_reward(sums)
    problem = Problem(counted, asked.policy, table, asked.seed, progress=asked.run.progress)
    known = LogTests(counted, asked.seed, _repeats(counted, table, sums))
    problems: dict[Policy, Problem] = {}
    answered = [_answered(known, problem, problems, question, table, intervals) for question in questions]
    whole = CountedTable(table, sums)
    behaviors = [behavior_side(asked, discount, own, whole) for discount, own in by_discount.items()]
    answered, sides = _fitted(asked, sums, answered, [side for side in behaviors if side is not None])
    columns = Columns.of(questions, [own.scorer for own in answered], sides)
    scored = _scored(asked, columns, sums)
    words = {name: book for name, book in asked.log.books.items() if name in ("state_names", "state_columns")}
    worded = replace(counted, **words)
    tests, estimates = SampleTests(asked, table), []
    for place, (question, own) in enumerate(zip(questions, answered, strict=True)):
        first = by_discount[question.discount]
        assert own.answer.ratio is not None
        seen = Seen(
            first,
            scored.joint,
            place + 1,
            alike_starts(own.scorer, place, first, scored),
            scored.masses[place],
            movements(worded, own.answer.ratio, counted.row_weights),
            *tests.found(question, own.answer, own.scorer),
        )
        estimates.append(scanned_estimate(known, question, own.problem, own.answer, intervals, seen))
    return with_behaviors(estimates, sides, columns, scored)


def _answered(
    known: LogTests,
    problem: Problem,
    problems: dict[Policy, Problem],
    question: Question,
    table: Tabular,
    intervals: Intervals,
) -> _Answered:
    policy, estimator = question.asked.policy, question.estimator
    with named(question.name), explained_starts(problem.data, policy):
        if policy not in problems:
            problems[policy] = problem.with_policy(policy)
        own = problems[policy]
        answer = checked_answer(own, estimator, estimator.answer(own))
        answer = with_evidence(known, own, estimator, answer, intervals.confidence)
    assert answer.influence is not None and answer.ratio is not None and isinstance(problem.data, CountedLog)
    return _Answered(own, answer, TableScorer(CellCodes(table), problem.data, answer.influence, answer.ratio))


def _fitted(
    asked: Asked, sums: Sums, answered: Sequence[_Answered], sides: Sequence[ScannedBehavior]
) -> tuple[list[_Answered], list[ScannedBehavior]]:
    """The same with shares that are corrected for pairs with few rows."""
    solved = [number for number, side in enumerate(sides) if isinstance(side.source, TableScorer)]
    scorers = [own.scorer for own in answered]
    scorers += [source for side in sides if isinstance(source := side.source, TableScorer)]
    if _few_rewards(asked, sums):
        pairs = [counted_pairs(scorer, sums) for scorer in scorers]
    else:
        pairs = pair_sums(asked.run.sums(asked.log, PairPass(tuple(scorers))), len(scorers))
    largest = largest_reward(sums)
    fitted = [replace(own, fitted=rows.fitted(largest)) for own, rows in zip(scorers, pairs, strict=True)]
    changed = list(sides)
    for number, scorer in zip(solved, fitted[len(answered) :], strict=True):
        changed[number] = replace(sides[number], source=scorer)
    return [replace(own, scorer=scorer) for own, scorer in zip(answered, fitted, strict=False)], changed


def _scored(asked: Asked, columns: Columns, sums: Sums) -> Scored:
    """The shares of the error, by a pass over the log or from the counts."""
    if "episodes" in asked.log.columns or not _few_rewards(asked, sums):
        return scored_by_pass(asked, columns, sums, _as_states)
    scorers = [scorer for scorer in columns.scorers if isinstance(scorer, TableScorer)]
    joint, masses = counted_shares(scorers, columns.behaviors, sums, columns.pairs, share_unit(sums))
    return Scored(joint, masses, None)


def _few_rewards(asked: Asked, sums: Sums) -> bool:
    """Whether the counts are the log: no weights, and of each cell no more rewards than are counted one by one."""
    return "weights" not in asked.log.columns and float(sums["slot_rows"].sum()) == float(sums["cell_rows"].sum())


def _as_states(numbers: np.ndarray) -> np.ndarray:
    return numbers[:, 0].astype(np.int64)


def _repeats(counted: CountedLog, table: Tabular, sums: Sums) -> Repeats:
    """How the outcomes of the pairs vary, from counts."""
    pair = counted.states.astype(np.int64) * table.num_actions + counted.actions
    _, pair = np.unique(pair, return_inverse=True)
    rows, usual = usual_rows(pair, sums)
    rows = np.maximum(rows, 1)
    return Repeats(np.round(rows[pair]).astype(np.int64), (1 - usual / rows)[pair], counted.distinct_rows)
