"""Every check is explained at its anchor, with the thresholds that it has."""

import ast
import html
import re
from pathlib import Path

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.report.explanations import explanation
from gradientdice.report.strip import limits
from gradientdice.statistics.checks import below

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "src/gradientdice/report/checks.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r'<a id="([^"]+)"></a>\n(.*?)(?=<a id=|\n## |\Z)', PAGE, re.S))


def names_in_the_code() -> set[str]:
    """The first argument of every call of `below` and `above`."""
    found = set()
    for path in (ROOT / "src/gradientdice").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "statistics.checks import" not in text:
            continue  # functions of the same name that are no checks
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("below", "above"):
                assert isinstance(node.args[0], ast.Constant), f"{path}: a check's name is a plain text"
                found.add(str(node.args[0].value))
    return found


def test_every_check_has_its_anchor():
    names = names_in_the_code()
    assert len(names) > 20
    missing = [name for name in names if below(name, 0.0, 1.0, 2.0, "", "").anchor not in SECTIONS]
    assert not missing, f"report/checks.md does not explain {missing}"


def test_reports_have_the_text_of_the_page():
    for anchor, section in SECTIONS.items():
        text = section.split("\n\n", 1)[1].replace("*", "").replace("`", "")
        shown = html.unescape(re.sub(r"</?(em|code)>", "", explanation(anchor)))
        assert shown == " ".join(text.split()) and "*" not in shown, anchor
    assert explanation("negative-mass").startswith("No true ratio is negative.")
    assert "<em>What would help:</em>" in explanation("negative-mass")
    assert explanation("a-check-of-the-reader-s-own") == ""


def test_the_site_s_page_is_the_same_text():
    page = (ROOT / "docs/checks.md").read_text(encoding="utf-8")
    assert "{include} ../src/gradientdice/report/checks.md" in page


def test_an_anchor_is_a_word_for_an_address():
    assert (
        below("half-width ÷ what is to be decided", 0.0, 1.0, 2.0, "", "").anchor == "half-width-what-is-to-be-decided"
    )
    assert all(re.fullmatch(r"[a-z0-9-]+", anchor) for anchor in SECTIONS)


def on_a_table():
    mdp, policy = gd.mdp.boyan_chain("continuing"), gd.TabularPolicy(np.tile([0.1, 0.9], (13, 1)))
    data = mdp.rollout(np.full((13, 2), 0.5), episodes=40, horizon=20, rng=np.random.default_rng(0))
    return gd.evaluate(data, policy, discount=0.9)


def distributions():
    mdp, policy = gd.mdp.boyan_chain("continuing"), gd.TabularPolicy(np.tile([0.1, 0.9], (13, 1)))
    data = mdp.rollout(np.full((13, 2), 0.5), episodes=40, horizon=20, rng=np.random.default_rng(0))
    return [gd.return_distribution(data, policy, discount=0.9, source=source) for source in ("episodes", "model")]


def on_continuous_states():
    rng = np.random.default_rng(0)
    states = rng.normal(size=(400, 2))
    following = 0.5 * states + rng.normal(size=(400, 2))
    data = gd.Transitions(states, rng.integers(0, 2, 400), states[:, 0], following, initial_states=states)
    policy = gd.DiscretePolicy(lambda rows: np.tile([0.3, 0.7], (len(rows), 1)), 2)
    return gd.evaluate(data, policy, discount=0.5, effort="quick")


@pytest.mark.parametrize("evaluated", [on_a_table, on_continuous_states])
def test_the_page_has_the_thresholds_of_the_code(evaluated):
    checks = evaluated().checks
    assert len(checks) > 8
    compare_with_the_page(checks)


def test_the_page_has_the_thresholds_of_distributions():
    weighted, simulated = (found.checks for found in distributions())
    assert weighted[0].name == "effective number of episodes" and len(weighted) > 3
    assert simulated[-1].name == "simulated mean against the estimate" and len(simulated) > 8
    compare_with_the_page([*weighted, *simulated])


def compare_with_the_page(checks):
    for check in checks:
        words = " ".join(SECTIONS[check.anchor].split())
        assert limits(check) in words, f"{check.name}: {limits(check)}"
        assert "What would help:" in words
