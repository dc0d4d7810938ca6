"""The benchmarks with continuous states: CartPole with restarts, pendulum, Reacher. Their truth is by Monte Carlo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gradientdice.functions.kernel import RandomFourier
from gradientdice.log.transitions import Transitions
from gradientdice.policies import DiscretePolicy, SamplingPolicy
from gradientdice_studies.continuous.environments import Environment, State, cart_pole, pendulum
from gradientdice_studies.reacher import environment as reacher
from gradientdice_studies.reacher.protocols import truth as reacher_truth
from gradientdice_studies.shootout.problems import Problem, Rng

SIZES = (2_000, 20_000)
FEATURES = RandomFourier(100, bandwidth=1.0, action_stretch=2.0)
TRUTH_EPISODES = 100_000
RESTART, ANGLE = 0.02, 12 * 2 * np.pi / 360


def _cart_pole() -> Problem:
    """CartPole that is paid for standing upright and starts again with probability 0.02 a step, or when it falls."""
    plain = cart_pole()
    target, behavior = plain.target, plain.behavior
    assert isinstance(target, DiscretePolicy) and isinstance(behavior, DiscretePolicy)

    def with_restarts(policy: DiscretePolicy, rng: Rng) -> Environment:
        def step(state: State, action: np.ndarray) -> tuple[State, np.ndarray, np.ndarray]:
            moved, _, ended = plain.step(state, action)
            reward = 1 - np.minimum(np.abs(state[:, 2]) / ANGLE, 1)
            return moved, reward, ended | (rng.random(len(state)) < RESTART)

        return replace(plain, step=step, horizon=500, behavior=policy)

    def log(rows: int, overlap: float, rng: Rng) -> Transitions:
        policy = _mixed_choices(target, behavior, overlap)
        data = with_restarts(policy, rng).log(rows, rng)
        chosen = np.take_along_axis(policy.probabilities_at(data.states), data.actions[:, None], axis=1)[:, 0]
        return replace(data, behavior_log_probs=np.log(chosen))

    def truth(discount: float) -> tuple[float, float]:
        rng = np.random.default_rng([4, int(1000 * discount)])
        data = with_restarts(target, rng).log(30 * TRUTH_EPISODES, rng)
        episode = data.episodes
        assert episode is not None
        first = np.searchsorted(episode, np.arange(episode[-1]))
        step = np.arange(len(data)) - first[np.minimum(episode, len(first) - 1)]
        inside = episode < episode[-1]  # the last may be cut short
        if discount < 1:
            returns = np.bincount(episode[inside], (1 - discount) * discount ** step[inside] * data.rewards[inside])
            return float(returns.mean()), float(returns.std() / np.sqrt(len(returns)))
        # The average of a chain that starts again: an episode's mean reward over its mean length.
        totals, lengths = np.bincount(episode[inside], data.rewards[inside]), np.bincount(episode[inside])
        value = totals.sum() / lengths.sum()
        error = np.std(totals - value * lengths) / np.sqrt(len(totals)) / lengths.mean()
        return float(value), float(error)

    return Problem("CartPole, restarting", (0.95, 1.0), SIZES, log, target, FEATURES, truth, tabular=False)


def _pendulum() -> Problem:
    plain = pendulum()
    target, behavior = plain.target, plain.behavior
    assert isinstance(target, SamplingPolicy) and isinstance(behavior, SamplingPolicy)

    def log(rows: int, overlap: float, rng: Rng) -> Transitions:
        return replace(plain, behavior=_mixed_draws(target, behavior, overlap)).log(rows, rng)

    def truth(discount: float) -> tuple[float, float]:
        return plain.value(target, discount, TRUTH_EPISODES, np.random.default_rng(5))

    return Problem("pendulum", (0.95,), SIZES, log, target, FEATURES, truth, tabular=False)


def _reacher() -> Problem:
    actor = reacher.Actor.load()
    target, behavior = reacher.noisy(actor, reacher.TARGET_NOISE), reacher.noisy(actor, reacher.BEHAVIOR_NOISE)

    def log(rows: int, overlap: float, rng: Rng) -> Transitions:
        seed = int(rng.integers(1 << 31))
        return reacher.make_log(seed, rows, _mixed_draws(target, behavior, overlap))

    def truth(discount: float) -> tuple[float, float]:
        return reacher_truth("corrected")[discount]

    return Problem("Reacher", (0.9,), SIZES, log, target, FEATURES, truth, tabular=False)


def _mixed_choices(target: DiscretePolicy, behavior: DiscretePolicy, overlap: float) -> DiscretePolicy:
    def probabilities(states: np.ndarray) -> np.ndarray:
        return overlap * target.probabilities_at(states) + (1 - overlap) * behavior.probabilities_at(states)

    return DiscretePolicy(probabilities, target.num_actions)


def _mixed_draws(target: SamplingPolicy, behavior: SamplingPolicy, overlap: float) -> SamplingPolicy:
    def sample(states: np.ndarray, rng: Rng) -> np.ndarray:
        own = rng.random(len(states)) < overlap
        return np.where(own[:, None], target.sample(states, rng), behavior.sample(states, rng))

    return SamplingPolicy(sample)


CONTROL: dict[str, Callable[[], Problem]] = {"cart-pole": _cart_pole, "pendulum": _pendulum, "reacher": _reacher}
