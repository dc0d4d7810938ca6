"""Printing computes nothing: the improvement is there where it is cheap, and is otherwise computed when asked for."""

import copy
import gc
import pickle
import weakref
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import gradientdice as gd
from gradientdice.cli.main import app
from gradientdice.default import search
from gradientdice.evaluation import baseline
from gradientdice.evaluation.baseline import BehaviorSide, LoggedBehavior
from gradientdice.evaluation.select import selected
from problems import known

POLICY = gd.DiscretePolicy(lambda states: np.tile([0.3, 0.7], (len(states), 1)), 2)
FEATURES = gd.LinearFeatures(lambda states, actions: np.column_stack([states, actions, np.ones(len(states))]))
NOT_YET = "not computed yet; ask estimate.improvement"


def rows() -> gd.Transitions:
    """Continuous states without episodes: the behaviour's value needs a search for features."""
    rng = np.random.default_rng(0)
    states, actions = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    after = 0.5 * states + 0.3 * actions[:, None] + 0.1 * rng.normal(size=(200, 2))
    return gd.Transitions(states, actions, states[:, 0] + actions, after, initial_states=states[:50])


def table() -> gd.Transitions:
    """Episodes that a time limit cuts: the behaviour's value is continued with the table's process."""
    return gd.mdp.boyan_chain("continuing").rollout(
        np.full((13, 2), 0.5), episodes=30, horizon=20, rng=np.random.default_rng(0)
    )


def answered() -> gd.Estimate:
    return gd.evaluate(rows(), POLICY, discount=0.9, functions=FEATURES)


@pytest.fixture
def searches(monkeypatch) -> list[object]:
    """The problems that features have been searched for."""
    found, call = [], search.Searching.__call__

    def counted(self, problem):
        found.append(problem)
        return call(self, problem)

    monkeypatch.setattr(search.Searching, "__call__", counted)
    return found


class Counted:
    """Stands for a log's behaviour, and counts how often its value is computed."""

    def __init__(self, *errors: Exception) -> None:
        self.calls, self.errors = 0, list(errors)

    def solved(self) -> None:
        self.calls += 1
        if self.errors:
            raise self.errors.pop()


def test_a_side_is_computed_once_for_all_copies():
    counted = Counted()
    side = BehaviorSide(counted)  # pyright: ignore[reportArgumentType]
    same = [copy.copy(side), copy.deepcopy(side), side]
    assert counted.calls == 0 and not side.is_known
    assert [each.value for each in same] == [None] * 3
    assert counted.calls == 1 and side.is_known


def test_a_failed_computation_is_tried_again():
    side = BehaviorSide(Counted(gd.InputError("not yet")))  # pyright: ignore[reportArgumentType]
    with pytest.raises(gd.InputError, match="not yet"):
        _ = side.value
    assert not side.is_known and side.value is None and side.is_known


def test_printing_an_answer_on_continuous_states_searches_for_nothing(searches):
    estimate = gd.evaluate(rows(), POLICY, discount=0.9, effort="quick")
    before = len(searches)
    assert before == 1
    texts = [str(estimate), repr(estimate), estimate._repr_html_(), str(estimate.rows())]
    assert all(NOT_YET in text for text in texts) and len(searches) == before
    assert estimate.metrics() and len(estimate.to_frame()) == 1 and len(searches) == before
    found = known(estimate.improvement)
    assert len(searches) == before + 1
    assert estimate.improvement is found and found.value == pytest.approx(estimate.value - found.baseline)
    for text in (str(estimate), repr(estimate), estimate._repr_html_(), estimate.to_json()):
        assert NOT_YET not in text
    assert found.text in str(estimate) and len(searches) == before + 1


def test_printing_rankings_curves_and_selections_searches_for_nothing(searches):
    other = gd.DiscretePolicy(lambda states: np.tile([0.6, 0.4], (len(states), 1)), 2)
    policies = {"one": POLICY, "other": other}
    ranking = gd.rank(rows(), policies, 0.9, baseline="one", functions=FEATURES)
    curve = gd.evaluate(rows(), POLICY, discount=[0.5, 0.9], functions=FEATURES)
    segments = gd.segments(rows(), POLICY, by=np.arange(50) % 2, discount=0.9, functions=FEATURES)
    posterior = gd.posterior(rows(), POLICY, discount=0.9, functions=FEATURES, draws=100)
    results = [ranking, selected(ranking), curve, segments, posterior]
    assert all(str(result) and repr(result) for result in results)
    assert ranking._repr_html_() and selected(ranking)._repr_html_() and searches == []
    assert not any(each.behavior_side.is_known for each in (*ranking.estimates.values(), *curve, segments.whole))


@pytest.mark.parametrize("ask", [gd.Estimate.to_json, gd.Estimate.to_dict, gd.Estimate.plot, pickle.dumps])
def test_whatever_exports_or_draws_an_estimate_asks_for_the_improvement(ask):
    estimate = answered()
    assert NOT_YET in str(estimate)
    ask(estimate)
    assert estimate.behavior_side.is_known and known(estimate.improvement).text in str(estimate)


def test_a_report_asks_for_the_improvement(tmp_path):
    estimate = answered()
    estimate.report(tmp_path / "report.html")
    assert estimate.behavior_side.is_known
    assert "the behaviour in the log" in (tmp_path / "report.html").read_text()


def test_the_command_line_asks_for_the_improvement(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(baseline, "SMALL_TABLE", 0)
    table().save("log.npz")
    np.save("policy.npy", np.tile([0.1, 0.9], (13, 1)))
    given = ["evaluate", "log.npz", "--policy", "policy.npy", "--discount", "0.9"]
    printed = CliRunner().invoke(app, given).stdout
    assert "improvement " in printed and "not computed yet" not in printed


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_a_small_table_gives_the_improvement_with_the_answer(discount):
    policy = gd.TabularPolicy(np.tile([0.1, 0.9], (13, 1)))
    estimate = gd.evaluate(table(), policy, discount=discount)
    assert estimate.behavior_side.is_known and known(estimate.improvement).text in str(estimate)


def test_a_large_table_is_asked_for_its_improvement_and_gives_the_same(monkeypatch):
    policy = gd.TabularPolicy(np.tile([0.1, 0.9], (13, 1)))
    expected = gd.evaluate(table(), policy, discount=0.9)
    monkeypatch.setattr(baseline, "SMALL_TABLE", 12)
    estimate = gd.evaluate(table(), policy, discount=0.9)
    assert NOT_YET in str(estimate)
    assert known(estimate.improvement).interval == known(expected.improvement).interval
    assert str(estimate) == str(expected)


def test_without_influence_values_the_row_says_how_to_get_the_behaviours_value():
    estimate = replace(answered(), sources=None)
    assert dict(estimate.rows())["behaviour's value"] == "not computed yet; ask estimate.behavior"
    assert estimate.behavior is not None and estimate.improvement is None
    assert f"{estimate.behavior.value:.6g}" in dict(estimate.rows())["behaviour's value"]


def test_copies_share_the_behaviours_value():
    estimate = answered()
    other = replace(estimate, notes=("changed",))
    assert not other.behavior_side.is_known
    expected = known(estimate.improvement)
    assert other.behavior_side.is_known
    for copied in (other, copy.copy(estimate), copy.deepcopy(estimate)):
        assert known(copied.improvement).interval == expected.interval


def test_a_pickled_estimate_has_its_improvement_and_not_its_log():
    estimate = answered()
    packed = pickle.dumps(estimate)
    again = pickle.loads(packed)
    assert b"LoggedProcess" not in packed and b"Transitions" not in packed
    assert known(again.improvement).interval == known(answered().improvement).interval
    assert str(again) == str(estimate)


def test_the_log_is_held_until_the_behaviours_value_is_known():
    data = rows()
    held = weakref.ref(data)
    estimate = gd.evaluate(data, POLICY, discount=0.9, functions=FEATURES)
    del data
    gc.collect()
    assert held() is not None
    assert estimate.improvement is not None
    gc.collect()
    assert held() is None


def test_what_is_unsolved_is_the_logs_own_process_and_nothing_else():
    side = answered().behavior_side
    assert list(vars(side)) == ["_unsolved"] and isinstance(side._unsolved, LoggedBehavior)
    assert set(vars(side._unsolved.process)) == {"data", "num_states", "seed"}


def test_policies_of_one_log_share_the_behaviours_value():
    other = gd.DiscretePolicy(lambda states: np.tile([0.6, 0.4], (len(states), 1)), 2)
    ranking = gd.rank(rows(), {"one": POLICY, "other": other}, 0.9, baseline="one", functions=FEATURES)
    one, another = ranking.estimates["one"], ranking.estimates["other"]
    assert one.behavior_side is another.behavior_side and not one.behavior_side.is_known
