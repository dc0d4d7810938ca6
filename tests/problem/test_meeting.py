"""A policy that meets a log: rules over its actions are discrete, and a policy is a function of the state."""

import numpy as np
import pandas as pd
import pytest

import gradientdice as gd
from problems import known

MDP = gd.mdp.boyan_chain("continuing")
UNIFORM = np.full((13, 2), 1 / 26)
DATA = MDP.sample(3_000, UNIFORM, np.random.default_rng(0))
# Over 13 states the rule takes action 1 in the upper ones.
TABLE = np.eye(2)[(np.arange(13) > 6).astype(int)]


def with_fields(data: gd.Transitions, **fields) -> gd.Transitions:
    plain = {name: getattr(data, name) for name in ("states", "actions", "rewards", "next_states")}
    return gd.Transitions(**{**plain, **fields})


def value(data, policy) -> float:
    return gd.evaluate(data, policy, discount=1.0).value


EXPECTED = value(DATA, gd.TabularPolicy(TABLE))
FLAT = with_fields(DATA, states=DATA.states.reshape(-1, 1) / 2, next_states=DATA.next_states.reshape(-1, 1) / 2)


@pytest.mark.parametrize(
    "rule",
    [
        gd.policy(lambda states: (states > 6).astype(int)),
        gd.policy(lambda states: np.where(states > 6, 1.0, 0.0)),
        gd.policy(lambda states: (states > 6)[:, None]),
        gd.policy(lambda states: [int(state > 6) for state in states]),
        gd.policy(lambda states: np.array([int(state > 6) for state in states], dtype=object)),
        gd.policy(lambda states: [str(int(state > 6)) for state in states]),
        gd.policy(np.arange(13) > 6),
        gd.SamplingPolicy(lambda states, rng: (states > 6).astype(int)),
        gd.LoggedPolicy(next_actions=(DATA.next_states > 6).astype(int)[:, None]),
    ],
)
def test_a_rule_that_returns_codes_is_a_deterministic_policy(rule):
    assert value(DATA, rule) == pytest.approx(EXPECTED, rel=1e-12)


def test_a_rule_that_returns_words_is_read_by_name():
    for names in (("left", "right"), ("zero", "alpha")):
        words = with_fields(DATA, action_names=names)
        rule = gd.policy(lambda states, names=names: [names[int(state > 6)] for state in states])
        assert value(words, rule) == pytest.approx(EXPECTED, rel=1e-12)


def test_the_numbering_of_the_actions_does_not_matter():
    far = with_fields(DATA, actions=DATA.actions * 7 + 2)
    found = gd.evaluate(far, gd.policy(lambda states: 2 + 7 * (states > 6)), discount=1.0)
    assert found.value == pytest.approx(EXPECTED, rel=1e-9)


def test_continuous_states_and_scanned_logs(tmp_path):
    rule = gd.policy(lambda states: (states[:, 0] > 3).astype(int))
    table = gd.DiscretePolicy(lambda states: np.eye(2)[(states[:, 0] > 3).astype(int)], 2)
    features = gd.LinearFeatures(lambda s, a: np.eye(26)[(2 * s[:, 0]).astype(int) * 2 + np.asarray(a)])
    for data in (FLAT, _scanned(FLAT, tmp_path)):
        found = [gd.evaluate(data, one, gd.GradientDICE(1.0), functions=features).value for one in (rule, table)]
        assert found[0] == pytest.approx(found[1], rel=1e-12)
    scanned = gd.evaluate(_scanned(DATA, tmp_path), gd.policy(lambda states: (states > 6) * 1), discount=1.0)
    assert scanned.value == pytest.approx(EXPECTED, rel=1e-9)


def _scanned(data: gd.Transitions, folder) -> gd.ScannedLog:
    data.save(folder / "log.parquet")
    return gd.scan(folder / "log.parquet")


WRONG = {
    "a code that was never logged": (lambda states: np.where(states > 6, 3, 0), r"action 3, .* \[0, 3\]; .* \[0, 1\]"),
    "a fraction": (lambda states: states / 20, r"returned 0\.\d+ in row \d+, and the log's actions are \[0, 1\]"),
    "words": (lambda states: ["go"] * len(states), r"takes the action go, .* the log has \[0, 1\]"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_a_rule_returns_and_the_log_lacks_is_refused_with_both_lists(case):
    rule, message = WRONG[case]
    with pytest.raises(gd.InputError, match=message) as caught:
        value(DATA, gd.policy(rule))
    assert len(str(caught.value)) <= 400


def test_words_that_the_log_never_has_are_refused_with_both_lists():
    data = with_fields(DATA, action_names=("left", "right"))
    rule = gd.policy(lambda states: np.where(states > 6, "right", "wait"))
    with pytest.raises(gd.InputError, match=r"action wait, .* \[right, wait\]; the log has \[left, right\]"):
        value(data, rule)


def test_a_code_that_was_never_logged_can_be_said_to_be_possible():
    rule = gd.policy(lambda states: np.where(states > 11, 2, 0), num_actions=3)
    found = gd.evaluate(DATA, rule, discount=1.0)
    assert known(known(found.diagnostics).unlogged) > 0 and found.verdict is not gd.Verdict.TRUST


def test_random_codes_are_refused_with_the_remedy():
    rule = gd.SamplingPolicy(lambda states, rng: rng.integers(0, 2, len(states)))
    with pytest.raises(gd.InputError, match="draws actions.*DiscretePolicy"):
        value(DATA, rule)


def test_a_classifier_of_number_words_is_read_by_number():
    far = with_fields(DATA, actions=DATA.actions * 7 + 3)
    rule = gd.DiscretePolicy(lambda states: TABLE[states][:, ::-1], 2, action_names=("10", "3"))
    assert gd.evaluate(far, rule, discount=1.0).value == pytest.approx(EXPECTED, rel=1e-9)
    with pytest.raises(gd.InputError, match=r"the action 3, which the policy does not know"):
        gd.evaluate(far, gd.DiscretePolicy(rule.function, 2, action_names=("10", "4")), discount=1.0)


def test_labels_of_a_frame_are_not_read_by_their_place():
    assert value(DATA, gd.policy(pd.DataFrame(TABLE))) == pytest.approx(EXPECTED, rel=1e-12)
    for frame in (pd.DataFrame(TABLE, columns=["go", "stay"]), pd.DataFrame(TABLE).iloc[::-1]):
        with pytest.raises(gd.InputError, match="has labels for its (states|actions)"):
            gd.policy(frame)


def test_a_logged_policy_of_many_rows():
    many = MDP.sample(40_000, UNIFORM, np.random.default_rng(1))
    logged = gd.LoggedPolicy(next_probabilities=TABLE[many.next_states])
    assert value(many, logged) == pytest.approx(value(many, gd.TabularPolicy(TABLE)), rel=1e-12)


class TestFunctions:
    def test_a_policy_that_looks_at_the_batch_is_refused(self):
        mean = gd.policy(lambda states: (states > states.mean()).astype(int), num_actions=2)
        with pytest.raises(gd.InputError, match="no function of the state"):
            value(DATA, mean)

    def test_flags_for_amounts_are_numbers(self):
        moved = with_fields(FLAT, actions=np.random.default_rng(1).integers(0, 2, (len(FLAT), 1)).astype(float))
        found = gd.evaluate(moved, gd.policy(lambda states: states[:, 0] > 3), discount=1.0, effort="quick")
        assert np.isfinite(found.value)

    def test_probabilities_that_are_drawn_anew_are_refused(self):
        rng = np.random.default_rng(0)
        noisy = gd.DiscretePolicy(lambda states: rng.dirichlet([1, 1], size=len(states)), 2)
        for data in (DATA, FLAT):
            with pytest.raises(gd.InputError, match="is no function of the state: asked twice about the same 256"):
                value(data, noisy)

    def test_draws_that_do_not_follow_the_seed_are_refused(self):
        rng = np.random.default_rng(0)
        moved = with_fields(FLAT, actions=np.random.default_rng(1).normal(size=(len(FLAT), 1)))
        own = gd.SamplingPolicy(lambda states, _: rng.normal(size=(len(states), 1)))
        with pytest.raises(gd.InputError, match="actions from the same seed that differ"):
            gd.evaluate(moved, own, discount=1.0, effort="quick")

    def test_scanned_logs_ask_too(self, tmp_path):
        rng = np.random.default_rng(0)
        noisy = gd.DiscretePolicy(lambda states: rng.dirichlet([1, 1], size=len(states)), 2)
        with pytest.raises(gd.InputError, match="no function of the state"):
            value(_scanned(DATA, tmp_path), noisy)

    def test_the_rounding_of_single_precision_is_allowed(self):
        calls = iter(range(1_000))

        def nearly(states):
            p = np.full(len(states), 0.3 + 2e-5 * (next(calls) % 2), dtype=np.float32)
            return np.stack([p, 1 - p], axis=1)

        assert np.isfinite(value(DATA, gd.DiscretePolicy(nearly, 2)))
        with pytest.raises(gd.InputError, match="no function"):
            value(DATA, gd.DiscretePolicy(lambda states: nearly(states).astype(np.float64), 2))
