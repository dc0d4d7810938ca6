"""Answers as cells of a notebook: the first screen of a report, without a style sheet of its own."""

from __future__ import annotations

from gradientdice.evaluation.estimate import Estimate
from gradientdice.evaluation.ranking import Ranking
from gradientdice.evaluation.select import Selection
from gradientdice.report.headline import headline, improvement_sentence
from gradientdice.report.page import template
from gradientdice.report.ranking_page import ranking_texts


def estimate_cell(estimate: Estimate) -> str:
    """The value, its interval and the verdict; the rest can be unfolded. Like `print`, it shows what is known."""
    difference = improvement_sentence(estimate) if estimate.behavior_side.is_known else ""
    return template("notebook_estimate.html").render(
        estimate=estimate, headline=headline(estimate), difference=difference
    )


def ranking_cell(found: Ranking | Selection) -> str:
    """The policies as a table, best first; those in bold may be the best."""
    return template("notebook_ranking.html").render(**ranking_texts(found))
