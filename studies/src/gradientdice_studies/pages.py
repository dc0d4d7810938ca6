"""Result pages: Jinja templates with Markdown prose, filled with numbers and tables and wrapped at 100 characters."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from functools import cache
from typing import Any

import jinja2

WIDTH = 100
# Blocks that start like this are headings, tables or figures, whose line ends matter.
NOT_PROSE = ("#", "|", "![")


def render(package: str, context: Mapping[str, Any], figures: Mapping[str, str]) -> str:
    """The page of an experiment.

    Args:
        package: the experiment's package in this folder.
        context: the values of the template's names; a name without a value is an error.
        figures: a figure's name -> its address as seen from the page.
    """
    template = _environment().get_template(f"{package}/page.md.jinja")
    return wrap(template.render(**context, figures=figures))


def wrap(text: str, width: int = WIDTH) -> str:
    """Markdown with its prose wrapped; headings, tables and figures stay as they are."""
    blocks = [block.strip("\n") for block in text.split("\n\n")]
    return "\n\n".join(_wrap_block(block, width) for block in blocks if block) + "\n"


def table_row(text: str) -> str:
    """A row of a Markdown table, which a template may write on several lines."""
    return " ".join(text.split()) + "\n"


def _wrap_block(block: str, width: int) -> str:
    if block.startswith(NOT_PROSE):
        return block
    return textwrap.fill(" ".join(block.split()), width, break_long_words=False, break_on_hyphens=False)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("gradientdice_studies", "."),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["table_row"] = table_row
    return environment
