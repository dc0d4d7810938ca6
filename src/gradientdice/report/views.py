"""The views of each kind of result: the table that `plot`, `report` and notebook cells of results are looked up in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from gradientdice.evaluation.curve import DiscountCurve
from gradientdice.evaluation.estimate import Estimate
from gradientdice.evaluation.posterior.result import Posterior, PosteriorRanking
from gradientdice.evaluation.ranking import Ranking
from gradientdice.evaluation.returns.result import ReturnDistribution
from gradientdice.evaluation.segments.result import Segments
from gradientdice.evaluation.select import Selection
from gradientdice.report import posterior_plots
from gradientdice.report.curve_page import write_curve_report
from gradientdice.report.notebook import estimate_cell, ranking_cell
from gradientdice.report.page import write_report
from gradientdice.report.plots import estimate_figure
from gradientdice.report.ranking_page import write_ranking_report
from gradientdice.report.ranking_plots import curve_figure, ranking_figure, selection_figure
from gradientdice.report.return_plots import return_figure
from gradientdice.report.segment_plots import segments_figure


@dataclass(frozen=True)
class Views:
    """Picture, page and notebook cell of one kind of result.

    Attributes:
        plot: gives a figure.
        report: writes a page to a path; None where there is no page.
        cell: gives a notebook's cell as HTML; None where a notebook shows the text.
    """

    plot: Callable[[Any], Figure]
    report: Callable[..., None] | None = None
    cell: Callable[[Any], str] | None = None


VIEWS: dict[type, Views] = {
    Estimate: Views(estimate_figure, write_report, estimate_cell),
    DiscountCurve: Views(curve_figure, write_curve_report),
    Ranking: Views(ranking_figure, write_ranking_report, ranking_cell),
    Selection: Views(selection_figure, write_ranking_report, ranking_cell),
    Segments: Views(segments_figure),
    Posterior: Views(posterior_plots.posterior_figure),
    PosteriorRanking: Views(posterior_plots.ranking_figure),
    ReturnDistribution: Views(return_figure),
}


def views_of(result: object) -> Views:
    """The views of a result's class, or of the first of its base classes that has some."""
    return next(VIEWS[kind] for kind in type(result).__mro__ if kind in VIEWS)
