"""A table from a scanned log: its counts are a log with weights, which is answered as any log in memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gradientdice.data.scan.passes import Sums
from gradientdice.estimators.answer import Answer, Estimator
from gradientdice.evaluation.estimate import Estimate
from gradientdice.evaluation.finish import with_evidence
from gradientdice.evaluation.interval import Intervals
from gradientdice.evaluation.returned import checked_answer
from gradientdice.evaluation.scan.facts import Seen, error_shares, sample_checks, scanned_estimate
from gradientdice.functions import Tabular
from gradientdice.inference.movement import movements
from gradientdice.inference.scan.score_pass import (
    PairPass,
    ScorePass,
    counted_pairs,
    counted_shares,
    mass_sums,
    share_sums,
)
from gradientdice.inference.scan.scorers import TableScorer
from gradientdice.inference.share_sums import ShareSums
from gradientdice.inference.small_samples import PairSums
from gradientdice.inference.unlogged import Repeats
from gradientdice.policies import SamplingPolicy, TabularPolicy
from gradientdice.problem.entrance import explained_starts
from gradientdice.problem.problem import LARGEST_TABLE, Problem
from gradientdice.problem.scan.asked import Asked, largest_reward, share_unit
from gradientdice.problem.scan.cells import CellCodes, usual_rows
from gradientdice.problem.scan.counted import CountedLog
from gradientdice.problem.scan.counts import CountPass, counted_log
from gradientdice.problem.scan.extent import ExtentPass


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


def table_estimate(asked: Asked, table: Tabular, estimator: Estimator, intervals: Intervals) -> Estimate:
    """The estimate of a table from counts."""
    discount, starts = estimator.discount, asked.has_first_states
    sums = asked.summed(lambda spill: CountPass(spill, discount, starts, table=table))
    counted, largest = counted_log(table, sums), largest_reward(sums)
    problem = Problem(counted, asked.policy, table, asked.seed, progress=asked.run.progress)
    problem.once_for_log("repeats", lambda: _repeats(counted, table, sums))
    with explained_starts(counted, asked.policy):
        answer = checked_answer(problem, estimator, estimator.answer(problem))
        answer = with_evidence(problem, estimator, answer, intervals.confidence)
    assert answer.influence is not None and answer.ratio is not None
    scorer = TableScorer(CellCodes(table), counted, answer.influence, answer.ratio)
    few = "weights" not in asked.log.columns and float(sums["slot_rows"].sum()) == float(sums["cell_rows"].sum())
    pairs = counted_pairs(scorer, sums) if few else _pair_sums(asked, scorer)
    scorer = replace(scorer, fitted=pairs.fitted(largest))
    seen = _seen(asked, estimator, answer, scorer, sums, from_counts=few and "episodes" not in asked.log.columns)
    words = {name: book for name, book in asked.log.books.items() if name in ("state_names", "state_columns")}
    seen = replace(seen, movements=movements(replace(counted, **words), answer.ratio, counted.row_weights))
    return scanned_estimate(asked, problem, estimator, answer, intervals, seen)


def _seen(
    asked: Asked, estimator: Estimator, answer: Answer, scorer: TableScorer, sums: Sums, *, from_counts: bool
) -> Seen:
    """The shares of the error, by a pass over the log or from the counts."""
    unit, size = share_unit(sums), int(sums["rows"][0])
    if from_counts:
        shares, mass = counted_shares(scorer, sums, unit)
        samples = error_shares(shares, _counted_starts(scorer, sums, unit), sums, None)
    else:
        found = asked.summed(
            lambda spill: ScorePass(
                spill, scorer=scorer, unit=unit, size=size, starts=asked.has_first_states, as_states=_as_states
            )
        )
        shares, mass = share_sums(found, "share", unit), mass_sums(found, size)
        samples = error_shares(shares, share_sums(found, "initial", unit), sums, found)
    checks, notes = sample_checks(asked, scorer.codes.table, estimator, answer, scorer)
    return Seen(sums, samples, mass, (), checks, notes)


def _as_states(numbers: np.ndarray) -> np.ndarray:
    return numbers[:, 0].astype(np.int64)


def _pair_sums(asked: Asked, scorer: TableScorer) -> PairSums:
    found = asked.run.sums(asked.log, PairPass(scorer))
    return PairSums(found["of_pairs"], found["totals"])


def _counted_starts(scorer: TableScorer, sums: Sums, unit: float) -> ShareSums | None:
    """The shares of initial states that are given, from their counts."""
    if "start_state" not in sums:
        return None
    shares = scorer.starts(sums["start_state"], np.ones(len(sums["start_state"])))
    return None if shares is None else ShareSums.of(shares / unit, unit, sums["start_rows"])


def _repeats(counted: CountedLog, table: Tabular, sums: Sums) -> Repeats:
    """How the outcomes of the pairs vary, from counts."""
    pair = counted.states.astype(np.int64) * table.num_actions + counted.actions
    _, pair = np.unique(pair, return_inverse=True)
    rows, usual = usual_rows(pair, sums)
    rows = np.maximum(rows, 1)
    return Repeats(np.round(rows[pair]).astype(np.int64), (1 - usual / rows)[pair], counted.distinct_rows)
