"""The report: one self-contained HTML file that needs no network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import jinja2
import pandas as pd

from gradientdice.base.atomic import replaceable, write_atomically
from gradientdice.base.errors import InputError, require_flag
from gradientdice.evaluation.estimate import Estimate
from gradientdice.log.files.reading import as_path
from gradientdice.report.digits import figure, percent
from gradientdice.report.evidence import pictures, value_picture
from gradientdice.report.headline import facts, headline, improvement_sentence
from gradientdice.report.strip import ALARM_AT, CAUTION_AT, strip
from gradientdice.report.theme import ON_ANY_PAPER


def write_report(
    estimate: Estimate, path: str | Path, *, comparison: pd.DataFrame | None = None, force: bool = False
) -> None:
    """Writes the report; an existing file is replaced only with `force`."""
    if comparison is not None and not isinstance(comparison, pd.DataFrame):
        raise InputError(f"comparison must be the table that compare gives, not {comparison!r:.60}.")
    write_page(lambda: render(estimate, comparison), path, force=force)


def write_page(make: Callable[[], str], path: str | Path, *, force: bool) -> None:
    """Writes the text that `make()` gives, unless a file is there that may not be replaced."""
    path = as_path(path)
    require_free(path, force=force)
    write_atomically(path, lambda target: target.write_text(make(), encoding="utf-8"))


def require_free(path: Path, *, force: bool) -> None:
    """An error unless a report can be written here: nothing is there, or a regular file that may be replaced."""
    if replaceable(path) is not None and not require_flag("force", force):
        raise InputError(f"{path} exists. Choose another name, or give force=True (--force) to replace it.")


def render(estimate: Estimate, comparison: pd.DataFrame | None = None) -> str:
    """The report as a string."""
    rows = [] if comparison is None else comparison.to_dict("records")
    return template("estimate.html").render(
        estimate=estimate,
        headline=headline(estimate),
        difference=improvement_sentence(estimate),
        facts=facts(estimate),
        value_picture=value_picture(estimate),
        pictures=pictures(estimate),
        strip=strip(estimate.checks),
        caution_at=CAUTION_AT,
        alarm_at=ALARM_AT,
        heaviest=() if estimate.footprint is None else estimate.footprint.heaviest,
        comparison=[{key: figure(value, 4) for key, value in row.items()} for row in rows],
    )


def template(name: str) -> jinja2.Template:
    """A page's template, with the filters that they share."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("gradientdice.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "figure": figure,
        "percent": percent,
        "css": lambda verdict: str(verdict).replace(" ", "-"),
        "colour": lambda verdict: ON_ANY_PAPER[str(verdict)],
    }
    return environment.get_template(name)
