"""Where the documentation is, for links from a report."""

from __future__ import annotations

DOCUMENTATION = "https://gradientdice.github.io/gradientdice/"


def check_link(anchor: str) -> str:
    """The explanation of one check: `anchor` is that of `Check.anchor`."""
    return f"{DOCUMENTATION}checks.html#{anchor}"
