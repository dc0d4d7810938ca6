"""The documentation: its links lead somewhere, and its examples run."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    (ROOT / "docs").rglob("*.md")
)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files(page):
    text = page.read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


def test_the_estimators_page_runs():
    code = re.findall(r"```python\n(.*?)```", (ROOT / "docs/estimators.md").read_text(), re.S)
    names: dict = {}
    exec("\n".join(code), names)
    assert names["LoggedMean"]().answer(names["gd"].Problem(names["data"], names["policy"])).value
    assert abs(names["estimate"].value - names["mdp"].value(names["target"], 0.95)) < 0.1
    assert (names["table"]["choice"] == "use this").sum() == 1
