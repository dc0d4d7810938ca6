"""A continuous chain with a known value: a point that drifts, pushed to the right or to the left at every step.

    s' = c s + p a + noise,   a ∈ {−1, 1},   r = s − k s² + noise.

The target pushes to the right with a fixed probability, so that the mean and the variance of s follow linear
recursions, and the value is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from gradientdice.log.transitions import Transitions
from gradientdice.policies import DiscretePolicy

Rng = np.random.Generator


@dataclass(frozen=True)
class Drift:
    """The chain, its starts and its policies.

    Attributes:
        carry: c.
        push: p.
        curvature: k.
        noise: the standard deviation of the noise in s' and in r.
        centers: the means of the groups of starts, which have a standard deviation of 0.5.
        shares: of the groups among all starts.
        right: the probability with which the target pushes to the right.
    """

    carry: float = 0.9
    push: float = 0.3
    curvature: float = 0.1
    noise: float = 0.3
    centers: tuple[float, ...] = (-2.0, 2.0)
    shares: tuple[float, ...] = (0.8, 0.2)
    right: float = 0.8

    @property
    def policy(self) -> DiscretePolicy:
        """The target."""
        return DiscretePolicy(lambda states: np.tile([1 - self.right, self.right], (len(states), 1)), 2)

    def truth(self, discount: float) -> float:
        """The target's value below discount 1."""
        mean, square = float(np.dot(self.shares, self.centers)), float(np.dot(self.shares, np.square(self.centers)))
        variance, total, weight = square + 0.25 - mean**2, 0.0, 1 - discount
        pushed, spread = self.push * (2 * self.right - 1), 1 - (2 * self.right - 1) ** 2
        while weight > 1e-14:
            total += weight * (mean - self.curvature * (variance + mean**2))
            mean = self.carry * mean + pushed
            variance = self.carry**2 * variance + self.push**2 * spread + self.noise**2
            weight *= discount
        return total

    def groups(self, episodes: int, shares: tuple[float, ...], rng: Rng) -> Int[np.ndarray, " episodes"]:
        """The group of starts that each episode is in."""
        return rng.choice(len(shares), size=episodes, p=shares)

    def episodes(self, group: Int[np.ndarray, " episodes"], horizon: int, rng: Rng) -> Transitions:
        """Episodes of the behaviour, which pushes to both sides alike, cut after `horizon` steps."""
        count = len(group)
        states = np.empty((horizon + 1, count))
        states[0] = np.array(self.centers)[group] + 0.5 * rng.normal(size=count)
        actions = rng.integers(0, 2, size=(horizon, count))
        for step in range(horizon):
            kick = self.push * (2 * actions[step] - 1) + self.noise * rng.normal(size=count)
            states[step + 1] = self.carry * states[step] + kick
        before = states[:-1].T.ravel()
        rewards = before - self.curvature * before**2 + self.noise * rng.normal(size=count * horizon)
        return Transitions(
            before[:, None],
            actions.T.ravel(),
            rewards,
            states[1:].T.ravel()[:, None],
            episodes=np.repeat(np.arange(count), horizon),
        )

    def rows(self, count: int, rng: Rng) -> Transitions:
        """Independent transitions from states all over the line, and as many starts."""
        starts = np.array(self.centers)[self.groups(count, self.shares, rng)] + 0.5 * rng.normal(size=count)
        states: Float[np.ndarray, " n"] = rng.normal(0.5, 1.8, size=count)
        actions = rng.integers(0, 2, size=count)
        following = self.carry * states + self.push * (2 * actions - 1) + self.noise * rng.normal(size=count)
        rewards = states - self.curvature * states**2 + self.noise * rng.normal(size=count)
        return Transitions(states[:, None], actions, rewards, following[:, None], initial_states=starts[:, None])
