"""A ranking's report: one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gradientdice.evaluation.ranking import Ranking
from gradientdice.evaluation.select import Selection
from gradientdice.report.digits import figure, known_to, percent
from gradientdice.report.evidence import Picture, place_pictures
from gradientdice.report.headline import headline, sentence
from gradientdice.report.page import template, write_page
from gradientdice.report.plots import criterion
from gradientdice.report.ranking_plots import MOST, best_figure, differences_figure, values_figure


def write_ranking_report(found: Ranking | Selection, path: str | Path, *, force: bool = False) -> None:
    """Writes the report of a ranking, or of what follows from one; a file is replaced only with `force`."""
    write_page(lambda: render_ranking(found), path, force=force)


def render_ranking(found: Ranking | Selection) -> str:
    """The report as a string. Its first screen is about the best policy, or about the choice."""
    texts = ranking_texts(found)
    ranking = found.ranking if isinstance(found, Selection) else found
    estimate = ranking.estimates[texts["name"]]
    return template("ranking.html").render(
        **texts,
        provenance=estimate.provenance,
        facts=_facts(ranking),
        differences=_differences(ranking),
        pictures=[_best(ranking), _values(ranking), *place_pictures(estimate, texts["name"])],
    )


def ranking_texts(found: Ranking | Selection) -> dict[str, Any]:
    """What is said of a ranking or a choice in words: of the best policy or the one chosen, then of each."""
    ranking = found.ranking if isinstance(found, Selection) else found
    # Where the baseline is kept, the best of the others is what comes nearest to replacing it.
    name = (found.choice if isinstance(found, Selection) else None) or ranking.names[0]
    estimate = ranking.estimates[name]
    return {
        "name": name,
        "decision": _decision(found) if isinstance(found, Selection) else None,
        "answer": _answer(ranking),
        "criterion": criterion(ranking.discount),
        "baseline": ranking.baseline_text,
        "headline": headline(estimate),
        "verdict": estimate.verdict,
        "rows": [_row(ranking, policy) for policy in ranking.names],
    }


def _decision(selection: Selection) -> tuple[str, str]:
    """What to do, and why."""
    ranking, choice = selection.ranking, selection.choice
    if choice is None:
        return f"Keep {ranking.baseline_text}", sentence(selection.reason.partition(": ")[2])
    apart = ranking.differences[choice]
    return f"Deploy {choice}", (
        f"It is shown to be better than {ranking.baseline_text}: {_signed(apart.value, apart.interval)} "
        f"({_ends(apart.interval)}), with {ranking.confidence:.0%} confidence over all {len(ranking.names)} candidates."
    )


def _answer(ranking: Ranking) -> str:
    """Who may be the best, a sentence."""
    kept, level = ranking.best_set, f"with {ranking.confidence:.0%} confidence"
    if len(kept) == 1:
        return f"Only {kept[0]} may be the best of these policies, {level}."
    return f"{len(kept)} of {len(ranking.names)} policies may be the best, {level}: {', '.join(kept[:MOST])}."


def _facts(ranking: Ranking) -> list[tuple[str, str]]:
    estimate = next(iter(ranking.estimates.values()))
    return [
        ("policies", figure(len(ranking.estimates))),
        (f"value of {ranking.baseline_text}", figure(ranking.side.sources.value, 4)),
        ("what a value is", criterion(ranking.discount)),
        ("transitions", figure(estimate.num_rows)),
        ("independent units", figure(estimate.num_clusters)),
    ]


def _row(ranking: Ranking, name: str) -> dict[str, object]:
    """A policy's cells, as texts."""
    estimate, difference = ranking.estimates[name], ranking.differences[name]
    first = headline(estimate)
    return {
        "policy": name,
        "value": first.value,
        "interval": first.interval.partition("interval ")[2],
        "difference": _signed(difference.value, difference.interval),
        "ends": _ends(difference.interval),
        "simultaneous": _ends(ranking.simultaneous[name]),
        "probability": percent(ranking.probability_best[name]),
        "kept": name in ranking.best_set,
        "verdict": estimate.verdict,
        "reason": first.reason,
    }


def _signed(value: float, interval: tuple[float, float]) -> str:
    return known_to(value, (interval[1] - interval[0]) / 2, signed=True)


def _ends(interval: tuple[float, float]) -> str:
    half = (interval[1] - interval[0]) / 2
    return " to ".join(known_to(end, half, signed=True) for end in interval)


def _only_first(ranking: Ranking) -> str:
    return f" The best {MOST} are shown." if len(ranking.names) > MOST else ""


def _differences(ranking: Ranking) -> Picture:
    names = [name for name in ranking.names[:MOST] if name != ranking.baseline]
    listed = "; ".join(
        f"{name} {_signed(ranking.differences[name].value, ranking.differences[name].interval)} "
        f"({_ends(ranking.differences[name].interval)})"
        for name in names
    )
    caption = (
        f"Thick: the {ranking.confidence:.0%} interval of each. Thin: intervals that hold for all at once. Blue is "
        f"better than {ranking.baseline_text}, orange worse, grey undecided.{_only_first(ranking)}"
    )
    title = f"Differences to {ranking.baseline_text}"
    return Picture.of("differences", title, caption, differences_figure(ranking), f"{listed}.")


def _best(ranking: Ranking) -> Picture:
    listed = ", ".join(f"{name} {percent(ranking.probability_best[name])}" for name in ranking.names[:MOST])
    caption = f"Blue policies may be the best, with {ranking.confidence:.0%} confidence.{_only_first(ranking)}"
    return Picture.of("best", "How probably each is the best", caption, best_figure(ranking), f"{listed}.")


def _values(ranking: Ranking) -> Picture:
    listed = ", ".join(f"{name} {figure(ranking.estimates[name].value, 4)}" for name in ranking.names[:MOST])
    caption = (
        "Each with its own interval. Policies of one log err alike: their differences are known better than these "
        f"intervals say.{_only_first(ranking)}"
    )
    return Picture.of("values", "Values", caption, values_figure(ranking), f"{listed}.")
