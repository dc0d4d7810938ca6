"""Small problems whose values are exact, and the rewards that the families draw around their means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gradientdice.log.transitions import Transitions
from gradientdice.mdp import TabularMDP
from gradientdice.policies import DiscretePolicy, TabularPolicy

Rng = np.random.Generator
# Draws of rewards, given their means.
Rewards = Callable[[np.ndarray, Rng], np.ndarray]


def normal(deviation: float) -> Rewards:
    """Means plus normal noise."""
    return lambda means, rng: means + deviation * rng.normal(size=len(means))


def clicks(means: np.ndarray, rng: Rng) -> np.ndarray:
    """1 with the mean as probability, else 0."""
    return (rng.random(len(means)) < means).astype(np.float64)


def exponential(means: np.ndarray, rng: Rng) -> np.ndarray:
    """Exponential: skewness 2."""
    return means * rng.exponential(size=len(means))


def pareto(index: float) -> Rewards:
    """Pareto from 0 on, with P(x > t) ∝ t^−index far out: at an index below 2 the variance is infinite."""
    return lambda means, rng: means * (index - 1) * rng.pareto(index, size=len(means))


def lognormal(deviation: float) -> Rewards:
    """Lognormal, with this standard deviation of the logarithm."""
    return lambda means, rng: means * rng.lognormal(-(deviation**2) / 2, deviation, size=len(means))


def rare(size: float, probability: float, deviation: float = 0.5) -> Rewards:
    """Normal noise, and once in a while a reward that is `size` times the mean larger."""

    def draw(means: np.ndarray, rng: Rng) -> np.ndarray:
        hits = rng.random(len(means)) < probability
        return means * size * hits + deviation * rng.normal(size=len(means))

    return draw


@dataclass(frozen=True, eq=False)
class Table:
    """A random MDP with means of rewards between 0 and `top`, a policy and a behaviour that differ, and its log.

    Attributes:
        states: how many.
        actions: how many.
        seed: of the MDP and the two policies.
        low: the smallest mean reward.
        top: the largest mean reward.
        peaked: how much the two policies prefer some actions: at 0 both are uniform.
    """

    states: int
    actions: int
    seed: int
    low: float = 0.5
    top: float = 1.5
    peaked: float = 1.0

    @property
    def mdp(self) -> TabularMDP:
        """The MDP."""
        return self._parts()[0]

    @property
    def target(self) -> TabularPolicy:
        """The policy to evaluate."""
        return TabularPolicy(self._parts()[1])

    @property
    def behavior(self) -> np.ndarray:
        """The probabilities of the policy that logs."""
        return self._parts()[2]

    def value(self, discount: float) -> float:
        """The policy's value."""
        mdp, target, _ = self._parts()
        return mdp.value(target, discount)

    def log(self, rows: int, rewards: Rewards, rng: Rng, starts: int | None = None) -> Transitions:
        """Independent rows in uniform states, and initial states (as many as rows unless said)."""
        mdp, _, behavior = self._parts()
        states = rng.integers(self.states, size=rows)
        actions = drawn(behavior[states], rng)
        return Transitions(
            states,
            actions,
            rewards(mdp.reward[states, actions], rng),
            drawn(mdp.transition[states, actions], rng),
            initial_states=rng.choice(self.states, size=rows if starts is None else starts, p=mdp.initial),
        )

    def episodes(self, count: int, steps: int, rewards: Rewards, rng: Rng) -> Transitions:
        """Episodes of the same length, cut by a time limit, with the behaviour's probabilities."""
        mdp, _, behavior = self._parts()
        state = rng.choice(self.states, size=count, p=mdp.initial)
        columns = []
        for _step in range(steps):
            action = drawn(behavior[state], rng)
            following = drawn(mdp.transition[state, action], rng)
            columns.append((state, action, following))
            state = following
        # Rows by episode, and by time within it.
        states, actions, next_states = (np.stack(column, axis=1).ravel() for column in zip(*columns, strict=True))
        return Transitions(
            states,
            actions,
            rewards(mdp.reward[states, actions], rng),
            next_states,
            episodes=np.repeat(np.arange(count), steps),
            truncated=np.tile(np.arange(steps) == steps - 1, count),
            behavior_log_probs=np.log(behavior[states, actions]),
        )

    def _parts(self) -> tuple[TabularMDP, np.ndarray, np.ndarray]:
        rng = np.random.default_rng(self.seed)
        transition = rng.dirichlet(np.full(self.states, 0.5), size=(self.states, self.actions))
        reward = rng.uniform(self.low, self.top, size=(self.states, self.actions))
        initial = rng.dirichlet(np.ones(self.states))
        target, behavior = (np.exp(self.peaked * rng.normal(size=(self.states, self.actions))) for _ in range(2))
        # A behaviour that takes every action now and then.
        behavior = 0.7 * behavior / behavior.sum(axis=1, keepdims=True) + 0.3 / self.actions
        return TabularMDP(transition, reward, initial), target / target.sum(axis=1, keepdims=True), behavior


@dataclass(frozen=True, eq=False)
class PushedPoint:
    """A continuous state that drifts where the actions push it: x' = decay · x + push · (a − ½) + noise.

    The mean reward is 1 + 0.3 a + slope · x, so that the value is exact: the mean of x obeys the same equation.

    Attributes:
        decay: of the state.
        push: of an action.
        slope: of the mean reward along the state.
        takes: the probability of action 1 under the policy; the behaviour takes it half of the time.
    """

    decay: float = 0.8
    push: float = 0.5
    slope: float = 0.1
    takes: float = 0.8

    @property
    def target(self) -> DiscretePolicy:
        """The policy to evaluate."""
        chances = np.array([1 - self.takes, self.takes])
        return DiscretePolicy(lambda states: np.tile(chances, (len(states), 1)), 2)

    def value(self, discount: float) -> float:
        """The policy's value: x has mean 0 at the start, and (1−γ) Σ γᵗ E[x_t] = γ pushed / (1 − γ decay)."""
        state = discount * self.push * (self.takes - 0.5) / (1 - discount * self.decay)
        return 1 + 0.3 * self.takes + self.slope * state

    def log(self, episodes: int, steps: int, rewards: Rewards, rng: Rng) -> Transitions:
        """Episodes of the same length, cut by a time limit."""
        state = 0.4 * rng.normal(size=episodes)
        columns = []
        for _step in range(steps):
            action = rng.integers(2, size=episodes)
            following = self.decay * state + self.push * (action - 0.5) + 0.3 * rng.normal(size=episodes)
            columns.append((state, action, following))
            state = following
        states, actions, next_states = (np.stack(column, axis=1).ravel() for column in zip(*columns, strict=True))
        return Transitions(
            states[:, None],
            actions,
            rewards(1 + 0.3 * actions + self.slope * states, rng),
            next_states[:, None],
            episodes=np.repeat(np.arange(episodes), steps),
            truncated=np.tile(np.arange(steps) == steps - 1, episodes),
        )


def drawn(probabilities: np.ndarray, rng: Rng) -> np.ndarray:
    """A choice for each row of probabilities."""
    last = probabilities.shape[1] - 1
    return np.minimum((rng.random(len(probabilities))[:, None] > np.cumsum(probabilities, axis=1)).sum(axis=1), last)
