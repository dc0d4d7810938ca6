"""One value of what runs today: texts, dicts, pages and pictures show the one that the difference is taken to."""

import json
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import gradientdice as gd
from gradientdice.cli.main import app
from gradientdice.evaluation import baseline
from gradientdice.evaluation.baseline import BehaviorSide
from gradientdice.report.curve_page import render_curve
from gradientdice.report.digits import figure, known_to
from gradientdice.report.headline import facts
from gradientdice.report.page import render
from gradientdice.report.ranking_page import render_ranking
from problems import known
from scans import written

RNG = np.random.default_rng(3)
TRANSITION = RNG.dirichlet(np.ones(5), size=(5, 2))
# Episodes begin in the state that pays least, so that what a time limit cut is unlike what was seen.
WORLD = gd.mdp.TabularMDP(TRANSITION, RNG.normal(size=(5, 2)) + np.arange(5)[:, None], np.eye(5)[0])
BEHAVIOR = np.full((5, 2), 0.5)
DATA = WORLD.rollout(BEHAVIOR, 300, 5, np.random.default_rng(1))
POLICIES = {"first": gd.TabularPolicy(np.tile([0.3, 0.7], (5, 1))), "second": gd.TabularPolicy(BEHAVIOR)}
DISCOUNTS = (0.95, 1.0)


@pytest.fixture(params=["in memory", "scanned"])
def log(request, tmp_path):
    return DATA if request.param == "in memory" else gd.scan(written(tmp_path / "log", DATA, (100, 201), 50))


def truth(discount: float) -> float:
    return WORLD.value(BEHAVIOR, discount)


def shown_value(page: str) -> str:
    """What a page says in words of the behaviour's value."""
    found = re.search(r"<dt>behaviour&#39;s value</dt><dd>(.*?)</dd>", page)
    return known(found)[1]


def points(drawn) -> list[float]:
    """Where the points of a picture's first panel are, from the top."""
    lines = [line for line in drawn.axes[0].lines if line.get_marker() == "o"]
    return [float(np.asarray(line.get_xdata())[0]) for line in sorted(lines, key=lambda line: -line.get_ydata()[0])]


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_an_estimate_shows_one_value_of_the_behaviour(log, discount):
    estimate = gd.evaluate(log, POLICIES["first"], discount=discount)
    difference, behavior, seen = known(estimate.improvement), known(estimate.behavior), known(estimate.behavior_seen)
    side = known(estimate.behavior_side.value).sources
    assert behavior.value == difference.baseline == side.value
    # In memory, and at discount 1, what was cut is continued: the cheap value is another number, and a worse one.
    continued = log is DATA or discount == 1
    assert (behavior.value != seen.value) == continued
    assert abs(behavior.value - truth(discount)) <= abs(seen.value - truth(discount))
    low, high = known(behavior.interval)
    assert low < truth(discount) < high and low < behavior.value < high
    assert behavior.unseen == seen.unseen
    rows = dict(estimate.rows())
    assert rows["behaviour's value"].startswith(f"{behavior.value:.6g} ({low:.6g} to {high:.6g})")
    assert f"over {behavior.value:.6g}:" in rows["improvement"]
    plain = estimate.to_dict()
    assert plain["behavior_value"] == plain["improvement"]["baseline"] == behavior.value
    assert plain["behavior_interval"] == [low, high]
    assert estimate.metrics()["behavior_value"] == behavior.value == estimate.to_frame()["behavior_value"][0]
    half = (known(estimate.interval)[1] - known(estimate.interval)[0]) / 2
    page = render(estimate)
    assert shown_value(page) == dict(facts(estimate))["behaviour's value"] == known_to(behavior.value, half)
    ends = f"{known_to(low, half)} to {known_to(high, half)}"
    assert f"the behaviour {known_to(behavior.value, half)} ({ends})" in page
    assert points(estimate.plot()) == [estimate.value, behavior.value]
    texts = [str(estimate), repr(estimate), estimate._repr_html_(), page]
    assert not any("mean logged reward" in text for text in texts)
    assert all(f"{behavior.value:.6g}" in text for text in texts[:3])
    if continued:
        assert not any(f"{seen.value:.6g}" in text for text in texts)
        assert known_to(seen.value, half) != shown_value(page)


def test_discounts_and_policies_show_the_same_value(log):
    curve = gd.evaluate(log, POLICIES["first"], discount=list(DISCOUNTS))
    rankings = gd.rank(log, POLICIES, list(DISCOUNTS))
    for estimate in curve:
        value, ranking = known(estimate.behavior).value, rankings[estimate.discount]
        own = [ranking.side.sources.value, ranking.to_dict()["baseline_value"]]
        own += [found["behavior_value"] for found in ranking.to_dict()["estimates"].values()]
        own += [found.baseline for found in ranking.differences.values()]
        # At another place in the passes over a scanned log the last digit may differ.
        assert len(set(own)) == 1 and own[0] == pytest.approx(value, rel=1e-12)
        assert f"compared with the behaviour ({value:.6g})" in str(ranking)
        page = render_ranking(ranking)
        assert f"<dt>value of the behaviour</dt><dd>{figure(value, 4)}</dd>" in page
        selection = gd.select(log, POLICIES, estimate.discount)
        assert f"({value:.6g})" in str(selection) and figure(value, 4) in render_ranking(selection)
        for text in (page, str(ranking), render_curve(curve), str(curve)):
            assert "mean logged reward" not in text


@pytest.mark.parametrize("options", [[], ["--scan"]])
def test_the_command_line_prints_the_same_value(tmp_path, options):
    folder = written(tmp_path / "log", DATA)
    np.save(tmp_path / "policy.npy", POLICIES["first"].probabilities)
    given = ["evaluate", str(folder / "000.parquet"), "--policy", str(tmp_path / "policy.npy"), "--discount", "0.95"]
    printed = CliRunner().invoke(app, [*given, *options, "--json"])
    found = json.loads(printed.stdout)
    assert found["behavior_value"] == found["improvement"]["baseline"]
    text = CliRunner().invoke(app, [*given, *options]).stdout
    assert f"{found['behavior_value']:.6g} (" in text and "mean logged reward" not in text


def test_metrics_leave_out_what_would_take_long_and_never_give_another_number(monkeypatch):
    monkeypatch.setattr(baseline, "SMALL_TABLE", 4)
    estimate = gd.evaluate(DATA, POLICIES["first"], discount=0.95)
    assert "behavior_value" not in estimate.metrics() and "behavior_value" not in estimate.to_frame()
    assert not estimate.behavior_side.is_known
    assert "behavior_mean" in estimate.metrics(), "another quantity, which costs nothing"
    value = known(estimate.behavior).value
    assert estimate.metrics()["behavior_value"] == value == known(pickle.loads(pickle.dumps(estimate)).behavior).value


def test_metrics_give_a_value_that_costs_nothing(monkeypatch):
    """At discount 0.3 the time limit cuts 0.2% of the discounted steps: the value is what was seen."""
    monkeypatch.setattr(baseline, "SMALL_TABLE", 0)
    estimate = gd.evaluate(DATA, POLICIES["first"], discount=0.3)
    assert estimate.behavior_side.is_known
    assert estimate.metrics()["behavior_value"] == known(estimate.behavior_seen).value
    assert (
        known(estimate.improvement).baseline == known(estimate.behavior).value == estimate.metrics()["behavior_value"]
    )


def test_a_bootstrap_makes_the_behaviours_interval_too():
    estimate = gd.evaluate(DATA, POLICIES["first"], discount=0.3, interval=gd.BootstrapInterval(), confidence=0.8)
    behavior, sources = known(estimate.behavior), known(estimate.behavior_side.value).sources
    assert behavior.interval == gd.BootstrapInterval().interval(behavior.value, sources.samples, 0.8, sources.seed)


def test_a_single_episode_gives_the_behaviour_a_value_and_no_interval():
    data = WORLD.rollout(BEHAVIOR, 1, 300, np.random.default_rng(0))
    estimate = gd.evaluate(data, POLICIES["second"], gd.ESTIMATORS["dual-dice"](0.5), solver=gd.PrimalDual(20, 0.01))
    assert estimate.improvement is None and known(estimate.behavior).interval is None
    assert estimate.to_dict()["behavior_interval"] is None
    assert str(estimate).count("behaviour's value") == 1 and shown_value(render(estimate))


def test_without_any_value_of_the_behaviour_the_mean_reward_is_called_what_it_is():
    data = WORLD.sample(400, np.full((5, 2), 0.1), np.random.default_rng(0))
    estimate = gd.evaluate(data, POLICIES["first"], discount=0.9)
    without = replace(estimate, behavior_seen=None, behavior_side=BehaviorSide.known(None))
    assert without.behavior is None and without.improvement is None
    expected = f"{without.behavior_mean:.6g} (not the behaviour's value at this discount)"
    assert dict(without.rows())["mean logged reward"] == expected
    page, whole = render(without), "mean logged reward (not the behaviour&#39;s value at this discount)"
    assert f"<dt>{whole}</dt>" in page and "behaviour's value" not in dict(without.rows())
    labels = [label.get_text() for label in without.plot().axes[0].get_yticklabels()]
    assert " ".join(labels[1].split()) == "mean logged reward (not the behaviour's value at this discount)"
    assert points(without.plot()) == [without.value, without.behavior_mean]
