"""The parts of a learned model that need no training."""

import jax.numpy as jnp
import numpy as np
import pytest

import gradientdice as gd
from gradientdice.base.effort import Effort
from gradientdice.default.model.encoding import MARGIN, Encoding
from gradientdice.default.model.network import closed_form_base
from gradientdice.default.model.returns import _last_states, average_rewards, lasting_share, truncated_returns
from gradientdice.default.model.settings import SETTINGS
from gradientdice.default.model.simulation import Paths, drawn_actions, traced_actions
from gradientdice.estimators.doubly_robust.network_scores import AVERAGE_DISCOUNT

COIN = gd.DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), 2)


def test_squares_are_fitted_exactly_and_each_target_by_its_own_rows(rng):
    inputs = rng.normal(size=(200, 3))
    targets = np.column_stack([2 * inputs[:, 0] - inputs[:, 1] ** 2 + 3, inputs[:, 2]])
    weights = np.ones((200, 2))
    targets[:50, 1], weights[:50, 1] = 1e3, 0.0
    found = closed_form_base(inputs, targets, weights)
    expected = np.zeros((7, 2))
    expected[0, 0], expected[4, 0], expected[6, 0], expected[2, 1] = 2, -1, 3, 1
    assert found == pytest.approx(expected, abs=1e-4)


def example_paths(rng, steps=7) -> Paths:
    states, reached = (rng.normal(size=(steps, 2, 3, 1)).astype(np.float32) for _ in range(2))
    rewards = rng.normal(size=(steps, 2, 3)).astype(np.float32)
    cut = np.zeros((steps, 3), dtype=bool)
    cut[-1], cut[2, 1] = True, True
    return Paths(states, reached, rewards, rng.random((steps, 2, 3)) < 0.2, cut, 0.0)


def test_time_before_an_end_is_that_of_long_paths(rng):
    paths, discount = example_paths(rng), 0.9
    expected = []
    for network, path in np.ndindex(2, 2):
        share, alive = 0.0, 1.0
        for step in range(7):
            share += (1 - discount) * discount**step * alive
            alive *= not paths.ended[step, network, path]
        expected.append(share + discount**7 * alive)
    assert lasting_share(paths, discount, 2) == pytest.approx(np.mean(expected))
    assert lasting_share(paths, 1.0, 2) == 1.0


def test_average_reward_does_not_depend_on_where_the_simulation_stops():
    # Episodes of 3 steps that pay 1, 1 and 10: 4 a step. The second half of 7 steps has an end or two, by chance.
    for steps in (7, 8, 9):
        ended = np.tile(np.arange(steps) % 3 == 2, (1, 5, 1)).transpose(2, 0, 1)
        rewards = np.where(ended, 10.0, 1.0).astype(np.float32)
        nothing = np.zeros((steps, 1, 5, 1), dtype=np.float32)
        paths = Paths(nothing, nothing, rewards, ended, np.zeros((steps, 5), dtype=bool), 0.0)
        assert average_rewards(paths, 5) == pytest.approx([4.0])


def test_average_reward_of_episodes_that_outlast_the_simulation(rng):
    # Each step ends with probability 0.02 and pays its number's parity; half of the episodes outlast 35 steps.
    steps, count = 40, 20_000
    ended = rng.random((steps, 1, count)) < 0.02
    rewards = np.broadcast_to((np.arange(steps) % 2)[:, None, None], ended.shape).astype(np.float32)
    nothing = np.zeros((steps, 1, count, 1), dtype=np.float32)
    paths = Paths(nothing, nothing, rewards, ended, np.zeros((steps, count), dtype=bool), 0.0)
    # An episode starts at parity 0: sum over odd t of 0.98^t, over sum over all t.
    assert average_rewards(paths, count) == pytest.approx([0.98 / 1.98], abs=0.01)
    still = Paths(nothing, nothing, rewards, np.zeros_like(ended), paths.cut, 0.0)
    assert average_rewards(still, count) == pytest.approx([0.5])


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_returns_are_sums_of_rewards_up_to_the_cut(rng, discount):
    paths = example_paths(rng)
    total, factor = truncated_returns(paths, discount)
    last = _last_states(paths)
    used = AVERAGE_DISCOUNT if discount == 1 else discount
    for step, network, path in np.ndindex(total.shape):
        expected, share, later = 0.0, 1.0, step
        for later in range(step, len(total)):
            expected += share * paths.rewards[later, network, path]
            share *= used * (discount == 1 or not paths.ended[later, network, path])
            if paths.cut[later, path]:
                break
        assert total[step, network, path] == pytest.approx(expected, abs=1e-5)
        assert factor[step, network, path] == pytest.approx(share)
        assert last[step, network, path] == paths.reached[later, network, path]


def test_what_an_end_pays_is_told_from_rewards_that_vary_up_to_it(rng):
    states = rng.uniform(-1, 1, size=(400, 2))
    ended = states[:, 0] > 0.9
    smooth = 2 * states[:, 0] - states[:, 1] ** 2
    for prize in (0.0, 50.0):
        data = gd.Transitions(
            states, rng.integers(2, size=400), smooth + prize * ended, states, states[:3], terminated=ended
        )
        encoding = Encoding.of(data, COIN)
        assert encoding.end_reward == pytest.approx(prize, abs=1e-6)
        low, high = encoding.reward_range
        assert -3.5 < low < high < 2.5, "the prize is not among the rewards of each step"
        reward = encoding.samples(data).targets[:, 2] * encoding.reward_scale + encoding.reward_center
        assert reward == pytest.approx(smooth, abs=1e-5)


def test_constant_columns_keep_their_value(rng):
    states = np.column_stack([rng.normal(size=50), np.full(50, 7.0)])
    data = gd.Transitions(states, rng.integers(2, size=50), np.ones(50), states + [[1.0, 0.0]], states[:3])
    encoding = Encoding.of(data, COIN)
    samples = encoding.samples(data)
    assert (encoding.change_scale == 0).all() and encoding.reward_scale == 0, "each change is the same"
    assert encoding.change_center == pytest.approx([1 / states[:, 0].std(), 0.0])
    assert encoding.reward_center == 1 and encoding.reward_range == (1.0, 1.0)
    assert not samples.targets.any() and samples.targets.shape == (50, 3), "no end, no target for it"
    assert encoding.raw_states(encoding.states(states)) == pytest.approx(states, abs=1e-5)
    span = np.ptp(np.concatenate([states, states + [[1.0, 0.0]]]), axis=0)
    low = encoding.raw_states(encoding.low[None].astype(np.float32))[0]
    assert low == pytest.approx(states.min(axis=0) - MARGIN * span, abs=1e-5)


def test_the_policy_sees_states_as_the_log_has_them(rng):
    # Zeros, decimals and whole numbers decide what many policies do; rounding must not move them.
    states = np.column_stack([rng.normal(0.3, 0.02, 60), rng.integers(0, 7, 60) / 10, rng.integers(-3, 4, 60) * 1e4])
    states[::3, 0] = 0.0
    for kind in (np.float64, np.float32):
        logged = states.astype(kind)
        data = gd.Transitions(logged, rng.integers(2, size=60), np.ones(60), logged, logged[:3])
        encoding = Encoding.of(data, COIN)
        seen = encoding.raw_states(encoding.states(logged))
        assert seen.dtype == kind and (seen[:, 1:] == logged[:, 1:]).all() and (seen[::3, 0] == 0).all()
        assert seen == pytest.approx(logged, abs=1e-5)


def test_a_compiled_policy_sees_the_same_zeros(rng):
    speeds = rng.normal(0.001, 1.0, size=(40, 1))
    speeds[::2] = 0.0
    data = gd.Transitions(speeds, rng.integers(2, size=40), np.ones(40), speeds, speeds[:3])
    along = gd.DiscretePolicy(
        lambda states: jnp.stack([states[:, 0] < 0, states[:, 0] >= 0], axis=1) * 1.0, 2, jax=True
    )
    encoding = Encoding.of(data, along)
    standard = encoding.states(speeds)[None]
    chosen = traced_actions(along, encoding, standard, jnp.full((1, 40), 0.5), None)
    assert np.argmax(chosen[0], axis=1).tolist() == (speeds[:, 0] >= 0).astype(int).tolist()


def test_next_states_after_an_end_are_not_learned_from(rng):
    states = rng.normal(size=(40, 1))
    ended = np.arange(40) % 4 == 0
    following = np.where(ended[:, None], 1e6, states + 0.1 * rng.normal(size=(40, 1)))
    data = gd.Transitions(
        states, rng.integers(2, size=40), rng.normal(size=40), following, states[:2], terminated=ended
    )
    encoding = Encoding.of(data, COIN)
    samples = encoding.samples(data)
    assert (samples.weights[ended, 0] == 0).all() and (samples.weights[~ended] == 1).all()
    assert (samples.targets[:, 2] == ended).all() and encoding.high[0] < 1e3


def test_actions_must_be_those_of_the_policy(rng):
    states = rng.normal(size=(4, 1))
    with pytest.raises(gd.InputError, match="row 2 is 2"):
        Encoding.of(gd.Transitions(states, [0, 1, 2, 0], np.zeros(4), states), COIN)
    with pytest.raises(gd.InputError, match="whole numbers"):
        Encoding.of(gd.Transitions(states, states, np.zeros(4), states), COIN)


def test_drawn_actions_have_the_policys_probabilities():
    chance = (np.arange(1000) + 0.5) / 1000
    drawn = drawn_actions(np.tile([0.2, 0.0, 0.8], (1000, 1)), chance)
    assert np.bincount(drawn, minlength=3).tolist() == [200, 0, 800]


def test_more_rows_get_more_steps_within_limits():
    settings = SETTINGS[Effort.NORMAL]
    assert settings.steps_for(100) == settings.steps == settings.steps_for(10_000)
    assert settings.steps_for(40_000) == 2 * settings.steps and settings.steps_for(10**7) == 3 * settings.steps


def test_a_last_state_that_is_not_known_is_not_learned_from(rng):
    """Missing next states at ends become copies of the state before: a change of exactly 0."""
    states = rng.normal(size=(400, 2))
    following, ended = states + 0.1 * rng.normal(size=(400, 2)), np.arange(400) % 20 == 19
    for missing in (False, True):
        after = np.where(ended[:, None] & missing, np.nan, following)
        data = gd.Transitions(
            states, rng.integers(0, 2, 400), states[:, 0], after, initial_states=states, terminated=ended
        )
        assert Encoding.of(data, COIN).last_states is not missing
