"""The pages on posteriors, returns and segments: their examples run, and say what the pages say."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"


def run(page: str) -> dict:
    names: dict = {}
    exec("\n".join(re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.S)), names)
    return names


def test_the_posteriors_page_runs():
    names = run("posterior.md")
    apart = names["ranking"].difference("a", "b")
    assert apart.standard_deviation < 0.5 * names["posterior"].standard_deviation


def test_the_returns_page_runs():
    found = run("returns.md")["found"]
    assert found.source == "episodes" and found.cvar(0.1) < found.mean


@pytest.mark.parametrize("name", ["starts", "rows"])
def test_the_segments_page_runs(name):
    found = run("segments.md")[name]
    assert found.total == pytest.approx(found.whole.value)
