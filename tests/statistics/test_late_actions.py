"""Actions of the row before are told apart from actions of the row."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.statistics.late_actions import action_effects, late_actions_check
from gradientdice.statistics.past import Past
from gradientdice_studies.traps.drift import Drift
from gradientdice_studies.traps.families.simulated import Table, normal
from problems import known


def table_log(seed):
    return Table(6, 2, seed=31).episodes(120, 30, normal(0.3), np.random.default_rng(seed))


def drift_log(seed):
    chain, rng = Drift(), np.random.default_rng(seed)
    return chain.episodes(chain.groups(60, chain.shares, rng), 25, rng)


def late(data):
    actions = np.roll(data.actions, 1)
    first = np.append(True, np.diff(data.episodes) != 0)
    actions[first] = data.actions[first]
    return replace(data, actions=actions, behavior_log_probs=None)


@pytest.mark.parametrize("log", [table_log, drift_log], ids=["table", "continuous"])
def test_actions_go_with_what_follows_and_late_ones_with_what_led_there(log):
    alarms = 0
    for seed in range(8):
        data = log(seed)
        after, before = action_effects(data, known(Past.of(data)), 0)
        assert after > 4 and before < 4
        assert known(late_actions_check(data, 0)).verdict is gd.Verdict.TRUST
        shifted = late(data)
        after, before = action_effects(shifted, known(Past.of(shifted)), 0)
        assert before > 5 and after < before / 2
        check = known(late_actions_check(shifted, 0))
        alarms += check.verdict is gd.Verdict.DO_NOT_TRUST
        assert "rows before" in check.reason
    assert alarms >= 6


def test_a_behaviour_that_follows_the_state_does_not_look_late():
    """Its actions go with how the state was reached, through the state alone."""
    table = Table(6, 2, seed=3, peaked=6.0)
    for seed in range(5):
        data = table.episodes(60, 25, normal(0.3), np.random.default_rng(seed))
        assert action_effects(data, known(Past.of(data)), 0)[1] < 4


def test_it_needs_time_order_and_several_actions(rng):
    data = table_log(0)
    assert late_actions_check(replace(data, actions=0 * data.actions, behavior_log_probs=None), 0) is None
    order = rng.permutation(len(data))
    shuffled = gd.Transitions(
        data.states[order], data.actions[order], data.rewards[order], data.next_states[order], initial_states=[0]
    )
    assert late_actions_check(shuffled, 0) is None
