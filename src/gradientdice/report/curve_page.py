"""The report of a value at several discounts: one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path

from gradientdice.evaluation.curve import DiscountCurve
from gradientdice.evaluation.estimate import Estimate
from gradientdice.report.digits import figure, known_to
from gradientdice.report.evidence import Picture, place_pictures
from gradientdice.report.headline import facts, headline, improvement_sentence
from gradientdice.report.page import template, write_page
from gradientdice.report.ranking_plots import curve_figure


def write_curve_report(curve: DiscountCurve, path: str | Path, *, force: bool = False) -> None:
    """Writes the report; an existing file is replaced only with `force`."""
    write_page(lambda: render_curve(curve), path, force=force)


def render_curve(curve: DiscountCurve) -> str:
    """The report as a string. Its first screen has the curve, its verdict, and the discounts that it comes from."""
    least = [own for own in curve if own.verdict is curve.verdict]
    estimate = least[0]
    first = headline(estimate)
    return template("curve.html").render(
        curve=curve,
        estimate=estimate,
        least=f"discount{'s' if len(least) > 1 else ''} {', '.join(f'{own.discount:g}' for own in least)}",
        headline=first,
        confidence=curve[0].confidence,
        picture=_picture(curve),
        facts=[(name, text) for name, text in facts(estimate) if name in ("transitions", "independent units")],
        pictures=place_pictures(estimate, f"the policy at discount {estimate.discount:g}"),
        rows=[_row(curve, number) for number in range(len(curve))],
    )


def _picture(curve: DiscountCurve) -> Picture:
    listed = "; ".join(f"at discount {own.discount:g} {_value(own)}" for own in curve)
    caption = "Bars: the interval at each discount. Band: holds at all of them at once."
    return Picture.of("curve", "The value over discounts", caption, curve_figure(curve), f"{listed}.")


def _value(estimate: Estimate) -> str:
    first = headline(estimate)
    return f"{first.value} ({first.interval})"


def _row(curve: DiscountCurve, number: int) -> dict[str, object]:
    """A discount's cells, as texts."""
    estimate, first = curve[number], headline(curve[number])
    band = None if curve.band is None else curve.band[number]
    half = None if band is None else (band[1] - band[0]) / 2
    return {
        "discount": f"{estimate.discount:g}",
        "value": first.value,
        "interval": first.interval.partition("interval ")[2],
        "band": "" if band is None else " to ".join(known_to(end, half) for end in band),
        "total": "" if estimate.total is None else figure(estimate.total, 4),
        "difference": improvement_sentence(estimate),
        "verdict": estimate.verdict,
        "reason": first.reason,
    }
