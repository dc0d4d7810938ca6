"""The pictures' colours, and how a picture becomes part of a page whose colours it follows.

The drawing functions use the colours of the light page. In a page each of them becomes a CSS variable, so that one
picture is right on a light page, on a dark one and on paper.
"""

from __future__ import annotations

import html
import io
import re

import matplotlib
from matplotlib.figure import Figure

INK, SOFT, LINE, PANEL = "#1b1f24", "#57616b", "#d3d9df", "#f4f6f8"
ACCENT, WARM = "#1f5fa8", "#b3500d"
TRUST, CAUTION, ALARM = "#0a7549", "#8a5200", "#b3261e"
# Of the verdicts, where it is not known whether the page is light or dark.
ON_ANY_PAPER = {"trust": "#1a9c66", "caution": "#c08000", "do not trust": "#d64f45"}
VARIABLES = {
    INK: "ink",
    SOFT: "soft",
    LINE: "line",
    PANEL: "panel",
    ACCENT: "accent",
    WARM: "warm",
    TRUST: "trust",
    CAUTION: "caution",
    ALARM: "alarm",
}

# The size of a picture that takes half the width of a page, or all of a phone's: text of 10 points is then read easily.
PANEL_SIZE = (4.6, 2.5)

SCREEN_DPI = 96

STYLE = {
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": SOFT,
    "axes.edgecolor": LINE,
    "axes.labelsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": SOFT,
    "ytick.labelcolor": SOFT,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "legend.labelcolor": SOFT,
    "figure.constrained_layout.use": True,
    "svg.fonttype": "none",
    # The same picture is the same text, so that a report that is made twice is the same file.
    "svg.hashsalt": "gradientdice",
}


class NotebookFigure(Figure):
    """A figure that a notebook shows as a picture, whether pyplot was imported or not."""

    def _repr_png_(self) -> tuple[bytes, dict[str, float]]:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=2 * SCREEN_DPI)  # sharp on screens with small points too
        width, height = self.get_size_inches() * SCREEN_DPI
        return buffer.getvalue(), {"width": float(width), "height": float(height)}


def styled():
    """A context in which figures have this style; it changes nothing outside."""
    return matplotlib.rc_context(STYLE)  # pyright: ignore[reportArgumentType]


def inline_svg(figure: Figure, name: str, description: str) -> str:
    """A figure as an `<svg>` element for a page.

    Args:
        figure: what was drawn.
        name: different for each picture of a page.
        description: what the picture shows, for those who do not see it.
    """
    buffer = io.StringIO()
    with styled():
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    # Metadata name outside addresses; a style element would hold for the whole page.
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text, flags=re.DOTALL)
    for color, variable in VARIABLES.items():
        text = text.replace(color, f"var(--{variable})")
    text = re.sub(r"(font: [\d.]+px|font-family:) '[^;\"]*", r"\1 system-ui, sans-serif", text)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    text = re.sub(r"\n\s*", "\n", text)
    viewed = re.search(r'viewBox="[^"]*"', text)
    assert viewed is not None
    label = html.escape(description, quote=True)
    opening = (
        f'<svg role="img" aria-label="{label}" {viewed[0]} xmlns="http://www.w3.org/2000/svg" '
        'xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    return re.sub(r"<svg[^>]*>", lambda _: opening, text, count=1)
