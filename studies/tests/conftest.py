"""Fixtures of the library's tests, and a page as the command writes it, checked for what every page must have."""

import re

import pytest

from conftest import problem, pytest_runtest_setup, rng  # before whatever imports the packages
from gradientdice_studies.pages import render
from gradientdice_studies.registry import EXPERIMENTS

__all__ = ["problem", "pytest_runtest_setup", "rng"]


def figures_of(text: str) -> list[str]:
    return re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text)


@pytest.fixture
def page():
    """(experiment's name, results, scale, names of its figures) -> the page's text."""

    def rendered(name, results, scale=None, figures=()):
        experiment = EXPERIMENTS[name]
        steps = experiment.load()
        links = {figure: f"somewhere/{figure}.png" for figure in figures}
        text = render(experiment.package, steps.context(results, scale or steps.full), links)
        assert sorted(figures_of(text)) == sorted(links.values()), "every figure is shown once"
        assert f"`gradientdice reproduce {name}`" in text
        for wrong in (r"\bnan\b", r"\bNone\b", r"\{\{|\}\}|\{%|%\}", r"array\(|dtype|np\.float"):
            assert not re.search(wrong, re.sub("`.*?`", "", text)), wrong
        blocks = text.split("\n\n")
        for block in blocks:
            if block.startswith("|"):
                # An unescaped bar in a cell would break the table.
                assert len({line.replace(r"\|", "").count("|") for line in block.splitlines()}) == 1, block
            elif not block.startswith(("#", "![")):
                assert max(map(len, block.splitlines())) <= 100, block
        return text

    return rendered
