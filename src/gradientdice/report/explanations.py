"""What each check means, for a reader without a network: a report has the text of the documentation's page itself."""

from __future__ import annotations

import re
from functools import cache
from html import escape
from importlib.resources import files

PAGE = "checks.md"
# An anchor, its heading, and the text up to whatever comes next.
SECTION = re.compile(r'<a id="([^"]+)"></a>\n\n### [^\n]+\n\n(.*?)(?=\n<a id=|\n## |\Z)', re.S)


def explanation(anchor: str) -> str:
    """The text on the check of this `Check.anchor`, as HTML; empty for a check that is not the library's own."""
    return _sections().get(anchor, "")


@cache
def _sections() -> dict[str, str]:
    page = files("gradientdice.report").joinpath(PAGE).read_text(encoding="utf-8")
    return {anchor: _in_line(" ".join(text.split())) for anchor, text in SECTION.findall(page)}


def _in_line(text: str) -> str:
    """The two marks that these texts use: *emphasis* and `code`."""
    marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", marked)
