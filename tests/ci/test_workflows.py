"""The workflows run what `make` runs, on every Python that the package names."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOWS = {path.stem: path.read_text() for path in (ROOT / ".github/workflows").glob("*.yml")}
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))


@pytest.mark.parametrize(
    ("workflow", "targets"),
    [
        ("tests", {"test", "test-lowest", "test-browser"}),
        ("docs", {"test-docs"}),
        ("release", {"test", "package"}),
    ],
)
def test_what_they_run_is_what_make_runs(workflow, targets):
    called = set(re.findall(r"\bmake ([a-z-]+)", WORKFLOWS[workflow]))
    assert called == targets <= TARGETS


def test_every_python_is_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {kind.rpartition(" ")[2] for kind in project["classifiers"] if "Python :: 3." in kind}
    tried = re.search(r"python: \[(.*)\]", WORKFLOWS["tests"])
    assert tried is not None and set(re.findall(r"3\.\d+", tried[1])) == named
    assert project["requires-python"] == ">=" + min(named, key=lambda version: int(version.partition(".")[2]))


def test_a_tag_makes_a_release_with_its_files():
    assert re.search(r'tags: \["v\*"\]', WORKFLOWS["release"]) and "dist/*" in WORKFLOWS["release"]
