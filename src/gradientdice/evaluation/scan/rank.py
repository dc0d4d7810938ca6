"""`rank` for a scanned log: every pass over it serves all policies and all discounts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from gradientdice.base.errors import InputError
from gradientdice.default.automatic import Automatic
from gradientdice.evaluation.difference import Compared
from gradientdice.evaluation.interval import Intervals
from gradientdice.evaluation.ranking import BEHAVIOR, Ranking
from gradientdice.evaluation.scan.evaluate import evaluate_scanned
from gradientdice.evaluation.scan.questions import Question
from gradientdice.log.files.reading import as_path
from gradientdice.log.scanning.passes import Run
from gradientdice.problem.scan.asked import Asked


def rank_scanned(
    asked: Mapping[str, Asked], discounts: Sequence[float], baseline: str, intervals: Intervals
) -> dict[float, Ranking]:
    """A ranking for each discount.

    Args:
        asked: the log and a policy, by the policy's name.
        discounts: at which they are ranked.
        baseline: "behavior", or the name of a policy.
        intervals: how intervals are made.
    """
    # Discounts of one policy follow each other, so that they share its features.
    questions = [Question(own, Automatic(discount), name) for name, own in asked.items() for discount in discounts]
    found = evaluate_scanned(questions, intervals)
    rankings = {}
    for number, discount in enumerate(discounts):
        estimates = dict(zip(asked, found.estimates[number :: len(discounts)], strict=True))
        side = found.behaviors.get(discount) if baseline == BEHAVIOR else Compared.of(estimates[baseline])
        if side is None:
            raise InputError(
                "The behaviour's own value is not known: below discount 1 a scanned log needs episodes in time order, "
                "or a table and initial states. Give them, or the name of one of the policies as baseline."
            )
        rankings[discount] = Ranking(estimates, baseline, side)
    return rankings


def run_for(checkpoint: str | Path | None, progress: bool | None) -> Run:
    """How passes are run."""
    return Run(None if checkpoint is None else as_path(checkpoint), progress)
