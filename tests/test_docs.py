"""The documentation: its links lead somewhere, and its examples run."""

import re
import runpy
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import gradientdice as gd
from gradientdice_studies.coverage.problems import problems
from problems import known

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / name
    for name in (
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "CODE_OF_CONDUCT.md",
        "studies/README.md",
    )
] + sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files(page):
    text = page.read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_code_is_no_wider_than_a_page(page):
    widest = int(known(re.search(r"^PAGE_WIDTH := (\d+)$", (ROOT / "Makefile").read_text(), re.M))[1])
    blocks = re.findall(r"^ *```.+\n((?:.*\n)*?) *```$", page.read_text(), re.M)
    lines = [line for block in blocks for line in block.splitlines() if not line.startswith(":")]  # options are no code
    assert [line for line in lines if len(line) > widest] == []


def test_the_first_tutorial_is_timed_as_it_is_shown():
    timing = runpy.run_path(str(ROOT / "benchmarks/first_tutorial.py"))
    parts = timing["cells"](timing["PAGE"].read_text())
    assert list(parts) == ["The log", "The policy", "The answer", "Pictures, and a page to send around"]
    assert not any("assert" in code for codes in parts.values() for code in codes)
    assert list(timing["run"]({"one": ["x = 1\nx + 1"], "two": ["assert x == 1"]})) == ["one", "two"]


class Tracker:
    """Stands for MLflow and Weights & Biases, which are not installed: it takes their calls and keeps the numbers."""

    def __init__(self):
        self.numbers, self.saved = {}, []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def start_run(self, **options):
        return self

    init = start_run

    def log_metrics(self, numbers):
        assert all(type(number) is float for number in numbers.values())
        self.numbers |= numbers

    log = log_metrics

    def log_artifact(self, path):
        assert Path(path).exists()
        self.saved.append(path)

    save = log_artifact

    def finish(self):
        return None


@pytest.mark.parametrize("page", ["tables", "gymnasium", "networks", "results"])
def test_pages_of_adapters_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trackers = {name: Tracker() for name in ("mlflow", "wandb")}
    for name, tracker in trackers.items():
        monkeypatch.setitem(sys.modules, name, tracker)
    code = re.findall(r"```python\n(.*?)```", (ROOT / f"docs/adapters/{page}.md").read_text(), re.S)
    names: dict = {}
    exec("\n".join(code), names)
    data = names["data"]
    if page == "tables":
        assert data.action_names == ("drug A", "drug B", "none") and data.states.shape == (1000, 2)
    if page == "gymnasium":
        assert len(np.unique(data.episodes)) == 30 and names["estimate"].interval is not None
    if page == "results":
        assert all(t.numbers["value"] == names["estimate"].value and t.saved for t in trackers.values())


def test_the_version_is_the_same_everywhere():
    packaged = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    studies = tomllib.loads((ROOT / "studies/pyproject.toml").read_text())["project"]
    cited = re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert [gd.__version__] == [packaged] == cited == [studies["version"]]
    assert studies["dependencies"] == [f"gradientdice=={packaged}"]


def listed(page):
    """The names under the autosummary and data directives of a page of the reference."""
    return set(re.findall(r"^(?:   |.. py:data:: )(\w+)$", (ROOT / "docs/reference" / page).read_text(), re.M))


def test_the_reference_has_every_public_name_and_no_other():
    assert listed("api.md") | {"mdp"} == set(dir(gd)), "docs/reference/api.md and the public names differ"
    assert listed("mdp.md") == set(gd.mdp.__all__), "docs/reference/mdp.md and gradientdice.mdp.__all__ differ"


def test_every_page_is_in_one_table_of_contents():
    """Sphinx warns of a page that is in none; a page that is in two has two places in the navigation."""
    found = []
    for page in (ROOT / "docs").rglob("*.md"):
        for entries in re.findall(r"```\{toctree\}\n(?::[^\n]*\n)*(.*?)```", page.read_text(), re.S):
            found += [(page.parent / entry).relative_to(ROOT / "docs").as_posix() for entry in entries.split()]
    pages = {path.relative_to(ROOT / "docs").with_suffix("").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert sorted(found) == sorted(pages - {"index"})


def test_the_estimators_page_runs():
    code = re.findall(r"```python\n(.*?)```", (ROOT / "docs/estimators.md").read_text(), re.S)
    names: dict = {}
    exec("\n".join(code), names)
    assert names["LoggedMean"]().answer(names["gd"].Problem(names["data"], names["policy"])).value
    assert abs(names["estimate"].value - names["mdp"].value(names["target"], 0.95)) < 0.1
    assert (names["table"]["choice"] == "use this").sum() == 1


def test_the_ranking_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", (ROOT / "docs/ranking.md").read_text(), re.S)
    names: dict = {}
    exec("\n".join(code), names)
    assert names["selection"].choice == names["ranking"].names[0] == "first 10%"
    assert (tmp_path / "selection.html").exists() and (tmp_path / "curve.html").exists()
    assert len(names["curve"]) == 4 and list(names["rankings"]) == [0.9, 1]


def test_the_readme_runs(tmp_path, monkeypatch):
    """With a log, a policy and a training of the reader's own."""
    problem = problems()["random 5×2"]()
    problem.trajectories(2000, np.random.default_rng(0)).save(tmp_path / "log.parquet")
    monkeypatch.chdir(tmp_path)
    learned_from = []

    def train(data):
        learned_from.append(len(data))
        return gd.TabularPolicy(problem.target)

    code = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert len(code) == 2
    other = gd.TabularPolicy(problem.behavior)
    names: dict = {"probabilities": problem.target, "train": train, "other": other}
    exec("\n".join(code), names)
    assert (tmp_path / "report.html").exists() and len(names["table"]) >= 2
    assert learned_from == [2000 - len(names["held_out"])]
    assert abs(names["estimate"].value - problem.truth(0.99)) < 0.2
