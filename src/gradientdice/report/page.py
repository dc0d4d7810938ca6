"""The report: one self-contained HTML file that needs no network."""

from __future__ import annotations

import io
import math
import re
from importlib.resources import files
from pathlib import Path

import jinja2
import matplotlib
import pandas as pd

from gradientdice.atomic import replaceable, write_atomically
from gradientdice.data.files.reading import as_path
from gradientdice.errors import InputError, require_flag
from gradientdice.evaluation.estimate import Estimate
from gradientdice.report.plots import estimate_figure

# Grey on nothing reads on a light page and on a dark one.
THEME = {
    "text.color": "#808080",
    "axes.labelcolor": "#808080",
    "axes.edgecolor": "#808080",
    "xtick.color": "#808080",
    "ytick.color": "#808080",
    "svg.fonttype": "none",
    "legend.framealpha": 0.0,
}


def write_report(
    estimate: Estimate, path: str | Path, *, comparison: pd.DataFrame | None = None, force: bool = False
) -> None:
    """Writes the report; an existing file is replaced only with `force`."""
    path = as_path(path)
    if comparison is not None and not isinstance(comparison, pd.DataFrame):
        raise InputError(f"comparison must be the table that compare gives, not {comparison!r:.60}.")
    require_free(path, force=force)
    write_atomically(path, lambda target: target.write_text(render(estimate, comparison), encoding="utf-8"))


def require_free(path: Path, *, force: bool) -> None:
    """An error unless a report can be written here: nothing is there, or a regular file that may be replaced."""
    if replaceable(path) is not None and not require_flag("force", force):
        raise InputError(f"{path} exists. Choose another name, or give force=True (--force) to replace it.")


def render(estimate: Estimate, comparison: pd.DataFrame | None = None) -> str:
    """The report as a string."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters["figure"] = _shown
    template = environment.from_string(
        files("gradientdice.report").joinpath("template.html").read_text(encoding="utf-8")
    )
    rows = [] if comparison is None else comparison.to_dict("records")
    return template.render(
        estimate=estimate,
        checks=estimate.checks,
        movements=estimate.movements,
        comparison=[{key: _shown(value) for key, value in row.items()} for row in rows],
        figure=_svg(estimate),
        tail_index=None if estimate.diagnostics is None else _shown(estimate.diagnostics.tail_index),
    )


def _shown(value: object) -> str:
    """A number as a reader wants it: no rounding dust, no exponent where digits will do."""
    if not isinstance(value, float):
        return "" if value is None else str(value)
    if math.isnan(value):
        return ""
    if math.isinf(value):
        return "∞"
    if abs(value) < 1e-9:
        return "0"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.4g}"


def _svg(estimate: Estimate) -> str:
    buffer = io.StringIO()
    with matplotlib.rc_context(THEME):  # pyright: ignore[reportArgumentType]
        estimate_figure(estimate).savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    # The picture's own metadata names outside addresses and says nothing to a reader.
    return re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
