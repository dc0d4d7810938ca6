"""Logs at the edges of what makes sense: small types, fixed starts, anything after an end."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from problems import known, random_problem


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint16, np.uint64])
def test_small_whole_numbers_do_not_overflow(kind, rng):
    states, actions = rng.integers(0, 120, size=30_000), rng.integers(0, 2, size=30_000)
    following = np.clip(states + 2 * actions - 1, 0, 119)
    policy = gd.TabularPolicy(np.tile([0.3, 0.7], (120, 1)))
    wide = gd.Transitions(states, actions, states / 120, following, states[:500])
    narrow = gd.Transitions(
        states.astype(kind),
        actions.astype(kind),
        states / 120,
        following.astype(kind),
        states[:500].astype(kind),
    )
    assert gd.evaluate(narrow, policy, discount=0.9).value == gd.evaluate(wide, policy, discount=0.9).value


def test_one_fixed_initial_state_is_a_known_distribution(rng):
    mdp, target, data_dist = random_problem(0)
    data, policy = mdp.sample(5000, data_dist, rng), gd.TabularPolicy(target)
    one, two, many = (
        gd.evaluate(replace(data, initial_states=[2] * count), policy, discount=0.9) for count in (1, 2, 1000)
    )
    np.testing.assert_allclose(known(one.interval), known(many.interval))
    assert str(one.verdict) == str(many.verdict) == "trust"
    # Two may be alike by chance.
    assert known(two.interval)[0] < known(one.interval)[0] and known(two.interval)[1] > known(one.interval)[1]
    assert str(two.verdict) == "do not trust" and "all alike" in two.reasons[0]
    few = gd.evaluate(replace(data, initial_states=[2, 3]), policy, discount=0.9)
    assert known(few.interval)[1] - known(few.interval)[0] < 30 * known(few.standard_error)


def test_what_follows_an_end_may_be_anything(rng):
    mdp, target, data_dist = random_problem(0)
    data = mdp.sample(500, data_dist, rng)
    ended = rng.random(500) < 0.2
    base = gd.Transitions(
        data.states, data.actions, data.rewards, data.next_states, data.initial_states, terminated=ended
    )
    odd = replace(base, next_states=np.where(ended, 10_000, data.next_states))
    policy = gd.DiscretePolicy(lambda states: target[states], 2)
    assert gd.evaluate(odd, policy, discount=0.9).value == gd.evaluate(base, policy, discount=0.9).value
    states = data.states[:, None].astype(float)
    missing = np.where(ended[:, None], np.nan, data.next_states[:, None])
    assert np.isfinite(gd.Transitions(states, data.actions, data.rewards, missing, terminated=ended).next_states).all()
    with pytest.raises(gd.InputError, match="next_states"):
        gd.Transitions(states, data.actions, data.rewards, np.full((500, 1), np.nan), terminated=ended)
