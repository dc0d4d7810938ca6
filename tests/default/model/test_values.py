"""A learned model's Q and V against exact answers, with small networks."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.base.effort import Effort
from gradientdice.default.model.settings import SETTINGS, ModelSettings
from gradientdice.default.model.values import ModelValues, simulated_values
from problems import known, linear_gaussian

SMALL = ModelSettings(members=2, width=48, steps=600, batch=128, paths=128, horizon=60, value_width=48, value_steps=600)
DISCOUNTS = (0.9, 0.999, 1.0)
END, COST, RIGHT = 6, 0.05, 0.7


@pytest.fixture(autouse=True, scope="module")
def small():
    """The tests' own settings in place of the quick ones."""
    before = SETTINGS[Effort.QUICK]
    SETTINGS[Effort.QUICK] = SMALL
    yield
    SETTINGS[Effort.QUICK] = before


@dataclass
class Counted:
    """A policy's function, and how often and with how many rows it was called."""

    function: object
    calls: int = 0

    def __call__(self, *arguments):
        self.calls += 1
        return self.function(*arguments)  # pyright: ignore


def learned(data, policy, discounts=DISCOUNTS, seed=0) -> tuple[gd.Problem, ModelValues]:
    problem = gd.Problem(data, policy, seed=seed)
    return problem, simulated_values(problem, discounts, problem.folds(2), Effort.QUICK)


def walk(rows: int, rng: np.random.Generator) -> gd.Transitions:
    """A finite MDP seen as a coordinate: steps to the left or right from 0 to 5, and an end that pays 1 beyond."""
    states = rng.integers(END, size=rows)
    actions = rng.integers(2, size=rows)
    following = np.maximum(states + 2 * actions - 1, 0)
    ended = following == END
    rewards = np.where(ended, 1.0, -COST)
    starts = rng.integers(3, size=500)
    return gd.Transitions(
        states[:, None] / 2.0, actions, rewards, following[:, None] / 2.0, starts[:, None] / 2.0, terminated=ended
    )


def walk_chain() -> tuple[np.ndarray, np.ndarray]:
    chain, reward = np.zeros((END, END)), np.full(END, -COST)
    for state in range(END):
        chain[state, max(state - 1, 0)] += 1 - RIGHT
        if state + 1 < END:
            chain[state, state + 1] += RIGHT
    reward[END - 1] += RIGHT * (1 + COST)
    return chain, reward


@pytest.fixture(scope="module")
def walked():
    count = Counted(lambda states: np.tile([1 - RIGHT, RIGHT], (len(states), 1)))
    data = walk(2000, np.random.default_rng(0))
    return count, data, *learned(data, gd.DiscretePolicy(count, 2))


def test_values_of_a_walk_that_ends(walked):
    _, data, _, found = walked
    chain, reward = walk_chain()
    where = np.rint(2 * data.start_states[:, 0]).astype(int)
    for (*_, held_out), discount in zip(found.by_discount[:2], DISCOUNTS, strict=False):
        truth = np.linalg.solve(np.eye(END) - discount * chain, reward)
        # Each start's value is the mean of a few paths; their mean over the starts of one state is V there.
        for state in range(3):
            assert held_out.initial_value[where == state].mean() == pytest.approx(truth[state], abs=0.06)
        assert (held_out.next_value[data.ended] == 0).all()
    values = [(1 - g) * h.initial_value.mean() for g, (*_, h) in zip(DISCOUNTS[:2], found.by_discount, strict=False)]
    # 64 returns of the simulation itself, whose mean has a standard error of about .004.
    assert found.values[:2] == pytest.approx(values, abs=0.02)


def test_average_reward_of_a_walk_that_starts_anew(walked):
    _, data, _, found = walked
    chain, reward = walk_chain()
    chain[-1] += RIGHT * np.r_[[1 / 3] * 3, [0] * 3]
    where = np.linalg.matrix_power(chain, 2000)[0]
    assert found.values[2] == pytest.approx(where @ reward, abs=0.01)
    residual = data.rewards + found.by_discount[2][-1].next_value - found.by_discount[2][-1].q
    ratio = where[np.rint(2 * data.states[:, 0]).astype(int)] * np.where(data.actions, RIGHT, 1 - RIGHT)
    assert np.average(residual, weights=ratio) == pytest.approx(where @ reward, abs=0.01)
    assert residual[ratio > 0].std() < 0.15
    held_out = found.by_discount[2][-1]
    assert (held_out.next_value[data.ended] == held_out.initial_value.mean()).all(), "an initial state follows"


def test_residuals_of_a_deterministic_walk_are_small(walked):
    _, data, _, found = walked
    assert not np.isclose(found.error_share, 1) and found.error_share < 0.01
    for (*_, held_out), discount in zip(found.by_discount[:2], DISCOUNTS, strict=False):
        residual = data.rewards + discount * held_out.next_value - held_out.q
        assert np.sqrt(np.mean(residual**2)) < 0.08, "the returns of single paths vary by .2 and more"


def test_v_is_the_policys_mean_of_the_same_q(walked):
    """Each row sees Q or V through one path; their means at a state are the policy's mean of the one and the other."""
    _, data, _, found = walked
    for lengths in found.by_discount:
        for held_out in lengths:
            for state in (0.5, 1.5):
                here = [held_out.q[(data.states[:, 0] == state) & (data.actions == action)] for action in (0, 1)]
                there = held_out.next_value[~data.ended & (data.next_states[:, 0] == state)]
                expected = (1 - RIGHT) * here[0].mean() + RIGHT * here[1].mean()
                noise = np.sqrt(sum(part.var() / len(part) for part in (*here, there)))
                assert there.mean() == pytest.approx(expected, abs=4 * noise)


def test_the_policy_is_called_in_batches_for_each_simulated_step(walked):
    count = walked[0]
    # Three groups of paths: from next states, from simulated ones, from initial states. Beside them, a check or two.
    assert SMALL.horizon < count.calls <= SMALL.horizon + 3 * max(SMALL.lengths) + 6


@pytest.fixture(scope="module")
def linear():
    data, policy, truth = linear_gaussian(3000, np.random.default_rng(0))
    return data, policy, truth, learned(data, policy)[1]


def test_a_linear_system_with_noise_and_continuous_actions(linear):
    data, _, truth, found = linear
    # The behaviour's value is −2.3. The variance of the noise is known from 150 held-out rows, to a tenth.
    assert 0.1 * known(found.by_discount[0][-1].initial_value).mean() == pytest.approx(truth, abs=0.06)
    assert found.values[0] == pytest.approx(truth, abs=0.08)
    # In the long run s' = .2 s + noise of variance .29.
    settled = -0.29 / (1 - 0.04)
    assert found.values[1:] == pytest.approx([settled, settled], abs=0.06)
    assert 0 <= found.left_share < 0.01
    # r = −s² has no noise, and the noise of s' is a quarter of the variance of its change or so.
    assert 0.02 < found.error_share < 0.3


def test_q_predicts_the_backed_up_value(linear):
    """E[r + γV' − Q | s, a] = 0: the residual's mean vanishes in each part of the state space."""
    data, _, _, found = linear
    held_out = found.by_discount[0][-1]
    residual = data.rewards + 0.9 * held_out.next_value - held_out.q
    for low, high in ((-1.5, -0.5), (-0.5, 0.5), (0.5, 1.5)):
        part = (data.states[:, 0] > low) & (data.states[:, 0] < high)
        assert abs(residual[part].mean()) < 4 * residual[part].std() / np.sqrt(part.sum()) + 0.1


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(linear):
    data, policy, _, found = linear
    again, other = (learned(data, policy, seed=seed)[1] for seed in (0, 1))
    for (*_, first), (*_, second), (*_, third) in zip(
        found.by_discount, again.by_discount, other.by_discount, strict=True
    ):
        assert (first.q == second.q).all() and (first.next_value == second.next_value).all()
        assert (first.q != third.q).any()
    assert found.values == again.values


@pytest.mark.slow
def test_a_jax_policy_is_simulated_in_one_program(linear):
    import jax

    data, _, truth, _ = linear
    count = Counted(lambda states, key: -0.6 * states + 0.2 * jax.random.normal(key, states.shape))
    policy = gd.SamplingPolicy(count, jax=True)
    gd.Problem(data, policy)
    door = count.calls  # a problem asks it for its width, and twice for the same answer
    found = learned(data, policy)[1]
    assert 0.1 * known(found.by_discount[0][-1].initial_value).mean() == pytest.approx(truth, abs=0.06)
    assert count.calls - 2 * door <= 3, "traced for the long paths, and for the rows' and the initial states' paths"


@pytest.mark.slow
def test_a_jax_policy_with_discrete_actions(walked):
    import jax.numpy as jnp

    _, data, _, found = walked
    policy = gd.DiscretePolicy(lambda states: jnp.tile(jnp.array([1 - RIGHT, RIGHT]), (len(states), 1)), 2, jax=True)
    same = learned(data, policy)[1]
    # The same draws of actions, in single precision.
    assert same.by_discount[0][-1].q == pytest.approx(found.by_discount[0][-1].q, abs=0.02)


@pytest.mark.slow
def test_noise_alone_is_not_learned():
    """A thousand rows of pure noise: early stopping keeps the held-out error near that of the mean."""
    rng = np.random.default_rng(0)
    states, following = rng.normal(size=(2, 1000, 6))
    data = gd.Transitions(states, rng.normal(size=(1000, 2)), rng.normal(size=1000), following, states[:50])
    policy = gd.SamplingPolicy(lambda states, rng: rng.normal(size=(len(states), 2)))
    found = learned(data, policy)[1]
    # Of the change s' − s half the variance is −s, which is learned; all of the reward is noise. The mean alone is at 1.
    assert found.error_share < 1.25 * (6 * 0.5 + 1) / 7
    assert found.values[0] == pytest.approx(data.rewards.mean(), abs=0.1)


@pytest.mark.slow
def test_without_initial_states_only_the_average_reward(linear):
    data, policy = replace(linear[0], initial_states=None), linear[1]
    with pytest.raises(gd.InputError, match="initial states"):
        learned(data, policy)
    found = learned(data, policy, (1.0,))[1]
    assert found.by_discount[0][-1].initial_value is None
    assert found.values[0] == pytest.approx(-0.29 / 0.96, abs=0.06)


@pytest.mark.slow
def test_rows_that_count_0_times_change_nothing_much():
    rng = np.random.default_rng(0)
    data = walk(1500, rng)
    weights = (np.arange(1500) % 3 > 0).astype(float)
    wrong = replace(data, rewards=np.where(weights > 0, data.rewards, 5.0), weights=weights)
    policy = gd.DiscretePolicy(lambda states: np.tile([1 - RIGHT, RIGHT], (len(states), 1)), 2)
    chain, reward = walk_chain()
    truth = np.linalg.solve(np.eye(END) - 0.9 * chain, reward)[:3].mean()
    found = learned(wrong, policy)[1].by_discount[0][-1]
    assert known(found.initial_value).mean() == pytest.approx(truth, abs=0.06)
