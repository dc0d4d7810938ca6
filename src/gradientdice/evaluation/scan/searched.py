"""Continuous states without functions: the default's search learns from a sample, and every other row is scored.

The interval has the sampling error of the rows that were scored, and the sample's own room for misfit: what the search
allows for there, and how far the answer on the sample moves where its Q is replaced by the one that scores the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gradientdice.base.errors import InputError
from gradientdice.default.automatic import Automatic
from gradientdice.default.linear_pair import predictions
from gradientdice.default.search import FunctionSearch, Searching, searched_functions
from gradientdice.estimators.answer import Answer, Estimator
from gradientdice.evaluation.assumptions import row_checks
from gradientdice.evaluation.finish import with_evidence
from gradientdice.evaluation.interval import Intervals
from gradientdice.evaluation.named import named
from gradientdice.evaluation.scan.behavior import behavior_side
from gradientdice.evaluation.scan.facts import Seen, alike_starts, moved, scanned_estimate, with_behaviors
from gradientdice.evaluation.scan.pair_scores import PairPass, PairRows, PairScorer
from gradientdice.evaluation.scan.questions import Columns, Question, ScannedEstimates
from gradientdice.evaluation.scan.score import scored_by_pass
from gradientdice.log.scanning.spill import Spill
from gradientdice.log.transitions import Transitions
from gradientdice.policies import Policy
from gradientdice.problem.entrance import explained_starts
from gradientdice.problem.problem import Problem, table_for
from gradientdice.problem.scan.asked import Asked, largest_reward
from gradientdice.problem.scan.first import Make, first_sums
from gradientdice.statistics.log_tests import LogTests
from gradientdice.statistics.room import margin


def is_searched(asked: Asked) -> bool:
    """Whether nobody gave functions, and states and actions are not few whole numbers."""
    return asked.functions is None and table_for(asked.log.sample, asked.policy) is None


def fits_in_memory(asked: Asked) -> bool:
    """Whether the search needs no scan: the sample is the whole log."""
    return is_searched(asked) and not asked.log.is_sampled


def require_default(estimator: Estimator) -> None:
    """An error for an estimator other than the default, whose functions nobody gave."""
    if not isinstance(estimator, Automatic):
        raise InputError(
            f"{type(estimator).__name__} needs functions= for a scanned log whose states are not few whole numbers: "
            "LinearFeatures(…), or RandomFourier(…), which is scaled to a sample. The default searches for them on "
            "log.sample."
        )


@dataclass(frozen=True, eq=False)
class _Learned:
    """What the sample says for one question.

    Attributes:
        problem: the sample, with the search as it was made.
        answer: the default's answer on the sample, with its evidence complete.
        search: the search.
        rows: its ratio and Q as functions of any row.
        smoothing: see `smoothing_error`.
    """

    problem: Problem
    answer: Answer
    search: FunctionSearch
    rows: PairRows
    smoothing: float


def searched_estimates(questions: Sequence[Question], intervals: Intervals) -> ScannedEstimates:
    """The default's estimates; policies and discounts share each pass over the log."""
    for question in questions:
        require_default(question.estimator)
    known = LogTests(questions[0].asked.log.sample, questions[0].asked.seed)
    learned = _learned(known, questions, intervals)
    asked = replace(questions[0].asked, log=questions[0].asked.log.without_sample())
    discounts = list(dict.fromkeys(question.discount for question in questions))
    rows = [own.rows for own in learned]
    found = first_sums(asked, [_pair_pass(asked, own) for own in rows], discounts)
    first = found[0][discounts[0]]
    largest_reward(first)
    _require_ends(asked, rows[0], float(first["totals"][4]))
    scorers = [PairScorer.of(own, sums[discounts[0]]) for own, sums in zip(rows, found, strict=True)]
    behaviors = [behavior_side(asked, discount, sums, None) for discount, sums in found[0].items()]
    sides = [side for side in behaviors if side is not None]
    columns = Columns.of(questions, scorers, sides)
    scored = scored_by_pass(asked, columns, first, rows[0].features.states)
    estimates = []
    for place, (question, own, scorer) in enumerate(zip(questions, learned, scorers, strict=True)):
        sums = found[place][question.discount]
        answer = replace(own.answer, value=scorer.value)
        seen = Seen(
            sums,
            scored.joint,
            place + 1,
            alike_starts(scorer, place, sums, scored),
            scored.masses[place],
            moved(scored, place, asked.log.books.get("state_columns")),
            row_checks(known, own.problem, question.estimator, own.answer),
            _notes(asked),
            own.search.chosen.distances,
            math.hypot(own.search.chosen.undirected, own.smoothing),
        )
        estimates.append(scanned_estimate(known, question, own.problem, answer, intervals, seen))
    return with_behaviors(estimates, sides, columns, scored)


def _learned(known: LogTests, questions: Sequence[Question], intervals: Intervals) -> list[_Learned]:
    """The searches: those of one policy share the sample's passes and the learned model."""
    by_policy: dict[Policy, list[int]] = {}
    for number, question in enumerate(questions):
        by_policy.setdefault(question.asked.policy, []).append(number)
    learned: dict[int, _Learned] = {}
    asked, first = questions[0].asked, None
    for policy, numbers in by_policy.items():
        with named(questions[numbers[0]].name), explained_starts(asked.log.sample, policy):
            if first is None:
                first = Problem(
                    asked.log.sample,
                    policy,
                    None,
                    asked.seed,
                    Searching(questions[0].discount),
                    progress=asked.run.progress,
                    effort=asked.effort,
                    sharers=len(by_policy),
                )
            problem = first.with_policy(policy)
            searches = searched_functions(problem, [questions[number].discount for number in numbers], pairs=True)
            for number, search in zip(numbers, searches, strict=True):
                learned[number] = _answered(known, problem, questions[number], search, intervals)
    return [learned[number] for number in range(len(questions))]


def _answered(
    known: LogTests, problem: Problem, question: Question, search: FunctionSearch, intervals: Intervals
) -> _Learned:
    assert search.pair is not None
    rows = PairRows.of(search.pair, question.asked.policy, question.asked.seed)
    smoothing = smoothing_error(question.asked.log.sample, search, rows)
    # The sample's feature rows, which the pair holds, are not needed any more.
    kept = replace(search, pair=None)
    own = replace(problem, search=lambda _: kept)
    answer = with_evidence(known, own, question.estimator, question.estimator.answer(own), intervals.confidence)
    allowance = margin(math.hypot(search.chosen.misfit, smoothing), intervals.confidence)
    note = f"with what its Q may lose on rows that it was not learned from, the interval is widened by {allowance:.2g}"
    evidence = replace(answer.evidence, allowance=allowance)
    return _Learned(own, replace(answer, evidence=evidence, notes=(*answer.notes, note)), kept, rows, smoothing)


def smoothing_error(data: Transitions, search: FunctionSearch, rows: PairRows) -> float:
    """How far the sample's answer moves where its Q is the one that scores other rows, with the same ratio."""
    pair, answer, discount = search.pair, search.chosen.answer, rows.discount
    assert pair is not None and answer.ratio is not None
    found = [predictions(pair.ratio_params, pair.value_params, design)[1:] for _, design in pair.rows.chunks()]
    residual = rows.residual(data, *(np.concatenate(part) for part in zip(*found, strict=True)))
    mass, start = data.row_weights * answer.ratio, 0.0
    if data.start_states is not None and (discount < 1 or rows.restarts):
        start = float(np.average(rows.values(data.start_states), weights=data.start_weights))
    if discount == 1:
        moved_to = (mass @ residual + (mass[data.ended].sum() * start if rows.restarts else 0.0)) / mass.sum()
    else:
        moved_to = (1 - discount) * start + mass @ residual / data.row_weights.sum()
    return abs(float(moved_to) - answer.value)


def _notes(asked: Asked) -> tuple[str, ...]:
    rows = len(asked.log.sample)
    return (
        f"features, ratio and Q were learned from {rows:,} rows, on which assumptions about the log were tested; all "
        "other rows were scored with them",
    )


def _pair_pass(asked: Asked, rows: PairRows) -> Make:
    starts = asked.has_first_states

    def make(spill: Spill | None, discount: float) -> PairPass:
        return PairPass(spill, discount, starts, rows=rows)

    return make


def _require_ends(asked: Asked, rows: PairRows, ended: float) -> None:
    """An error if episodes end in the log and not in the sample."""
    if ended and not rows.features.absorbing:
        raise InputError(
            f"Episodes end in the log, and in the {len(asked.log.sample):,} rows of log.sample, from which features, "
            "ratio and Q are learned, none does. Give functions=, or sort the log so that ends are all over it."
        )
