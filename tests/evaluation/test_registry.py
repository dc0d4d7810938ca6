"""The registry of estimators, and everything that lists them: the stub, the reference, the documentation, the command line."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.estimators.answer import Declares, declared
from gradientdice.estimators.needs import require_needs
from gradientdice.evaluation.registry import DEFAULT, ESTIMATORS, UNLISTED, compared
from gradientdice.evaluation.scan.evaluate import require_scannable
from problems import random_problem

ROOT = Path(__file__).parents[2]
ALL = {**ESTIMATORS, **UNLISTED}
NUMBERS = {"sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "twenty-one": 21}


def text(page: str) -> str:
    return (ROOT / page).read_text()


def discounts(kind) -> str:
    own = declared(kind(1.0))
    return "below 1" if own.discounted_only else "1" if own.average_only else "[0, 1]"


def needs(kind) -> str:
    own, average = declared(kind(0.5)), declared(kind(1.0))
    used = {"state ratio": "functions of the state", "trajectories": "functions for Q"}.get(own.family, "functions")
    parts = ["T" if not own.whole_trajectories else "E" if average.whole_trajectories else "E below 1"]
    parts += ["μ"] * own.needs_behavior
    return ", ".join(parts + [used + " or networks" * own.takes_networks] * own.uses_functions)


def rows_of_the_page() -> dict[str, list[str]]:
    """Name -> cells of the table on the page of estimators."""
    lines = re.findall(r"^\| `(\w+)` \|(.*)\|$", text("docs/estimators.md"), re.M)
    assert len(lines) == len(dict(lines)), "one row for each"
    return {name: [cell.strip() for cell in cells.split("|")] for name, cells in lines}


def test_the_page_of_estimators_says_what_each_declares():
    rows = rows_of_the_page()
    assert list(rows) == [kind.__name__ for kind in ALL.values()]
    for kind in ALL.values():
        assert rows[kind.__name__][:4] == [kind.family, discounts(kind), needs(kind), kind.reference]


def test_names_are_public_in_the_order_of_the_registry():
    stub, reference = text("src/gradientdice/__init__.pyi"), text("docs/reference/api.md")
    listed = [name for name in re.findall(r"^   (\w+)$", reference, re.M) if name in {k.__name__ for k in ALL.values()}]
    assert listed == [DEFAULT.__name__, *(kind.__name__ for kind in ESTIMATORS.values()), "ModelRollouts"]
    for name, kind in ALL.items():
        own, place = kind.__name__, kind.__module__.removeprefix("gradientdice")
        assert f"from {place} import {own} as {own}\n" in stub and own in dir(gd) and getattr(gd, own) is kind
        assert name.replace("-", "") == own.lower()
    assert gd.ESTIMATORS is ESTIMATORS and not set(UNLISTED) & set(ESTIMATORS)
    assert list(ESTIMATORS)[:3] == [name for name, kind in ESTIMATORS.items() if kind.takes_solver], "these come first"


def test_every_estimator_names_its_paper():
    for kind in ALL.values():
        found = re.fullmatch(r"(\w+)[, ].*\b(\d{4})", kind.reference)
        assert kind.family and found, kind
        cited = (sys.modules[kind.__module__].__doc__ or "").split("References:")[1]
        assert found[1] in cited and found[2] in cited, kind


def test_counts_and_lists_in_prose():
    (others,) = re.findall(r"GradientDICE, GenDICE, DualDICE, and \[([\w-]+) others\]", text("README.md"))
    assert NUMBERS[others] == len(ESTIMATORS) - 3
    by_sums = {kind.__name__ for kind in ESTIMATORS.values() if kind.from_sums}
    (taken,) = re.findall(r"FQE and others; ([^)]*) are taken\)", text("docs/large_logs.md"))
    with pytest.raises(gd.InputError, match="needs the log in memory") as refused:
        require_scannable(gd.WIS(0.9))
    for words in (taken, str(refused.value).split("evaluated by")[1].split(";")[0]):
        assert set(re.findall(r"[A-Z]\w*[A-Z]\w*", words)) == by_sums
    for kind in ALL.values():
        if kind.from_sums:
            require_scannable(kind(0.9))


def test_old_names_are_gone():
    assert not hasattr(gd, "RELATED")
    for page in (ROOT / "docs").rglob("*.md"):
        assert "RELATED" not in page.read_text(), page


@dataclass(frozen=True)
class LoggedMean(Declares):
    """The log's mean reward, of logs with episodes.

    References:
        A. Author, Journal 2026.
    """

    family = "toy"
    reference = "Author, Journal 2026"
    whole_trajectories = True
    uses_functions = False

    discount: float

    def answer(self, problem, solver=None):
        require_needs(self, problem, solver)
        return gd.Answer(value=float(problem.data.rewards.mean()))


def test_one_line_in_the_registry_adds_an_estimator(monkeypatch):
    monkeypatch.setitem(ESTIMATORS, "logged-mean", LoggedMean)
    mdp, target, data_dist = random_problem(0)
    episodes = mdp.rollout(np.full((5, 2), 0.5), 40, 10, np.random.default_rng(0))
    bare, policy = mdp.sample(400, data_dist, np.random.default_rng(0)), gd.TabularPolicy(target)
    assert repr(LoggedMean(0.9)) in [repr(estimator) for estimator in compared(0.9)]
    rows = gd.compare(episodes, policy, [gd.GradientDICE(0.9), gd.ESTIMATORS["logged-mean"](0.9)])
    assert rows.set_index("estimator").loc["LoggedMean(discount=0.9)", "value"] == episodes.rewards.mean()
    with pytest.raises(gd.InputError, match="LoggedMean needs whole trajectories and the log has no episodes"):
        gd.evaluate(bare, policy, LoggedMean(0.9))
    with pytest.raises(gd.InputError, match="LoggedMean takes no solver"):
        gd.evaluate(episodes, policy, LoggedMean(0.9), solver=gd.ClosedForm())
    with pytest.raises(gd.InputError, match="LoggedMean needs the log in memory"):
        require_scannable(LoggedMean(0.9))
    assert set(rows_of_the_page()) != {kind.__name__ for kind in {**ESTIMATORS, **UNLISTED}.values()}, (
        "a row is missing"
    )
    assert (discounts(LoggedMean), needs(LoggedMean)) == ("[0, 1]", "E")


def test_a_class_of_ones_own_without_declarations_is_refused_nothing():
    class Own:
        discount = 0.9

        def answer(self, problem, solver=None):
            require_needs(self, problem, solver)
            return gd.Answer(value=0.25)

    mdp, target, data_dist = random_problem(0)
    data = mdp.sample(200, data_dist, np.random.default_rng(0))
    assert gd.evaluate(data, gd.TabularPolicy(target), Own(), solver=gd.ClosedForm()).value == 0.25
    assert declared(Own()).family == "" and not declared(Own()).from_sums
    for name, wrong, words in (("needs_behavior", "yes", "True or False"), ("family", 3, "a text")):
        with pytest.raises(gd.InputError, match=f"Own.{name} must be {words}"):
            declared(type("Own", (), {name: wrong})())
