"""Systems with continuous states of which a log may show a part, many episodes at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from gradientdice.log.transitions import Transitions
from gradientdice.policies import DiscretePolicy
from gradientdice_studies.traps.families.simulated import drawn

Rng = np.random.Generator
States = Float[np.ndarray, "n d"]


@dataclass(frozen=True, eq=False)
class System:
    """A continuing system with discrete actions.

    Attributes:
        reset: (episodes, rng) -> states.
        step: (states, actions, rng) -> (next states, rewards).
        observe: states -> what the log shows.
        behavior: the logging policy, a function of the whole state.
        target: the policy to evaluate, a function of what the log shows.
    """

    reset: Callable[[int, Rng], States]
    step: Callable[[States, np.ndarray, Rng], tuple[States, np.ndarray]]
    observe: Callable[[States], States]
    behavior: DiscretePolicy
    target: DiscretePolicy

    def log(self, episodes: int, horizon: int, rng: Rng) -> Transitions:
        """Episodes of the same length, cut by a time limit."""
        state = self.reset(episodes, rng)
        steps = []
        for _ in range(horizon):
            probabilities = self.behavior.probabilities_at(state)
            action = drawn(probabilities, rng)
            following, reward = self.step(state, action, rng)
            taken = np.log(np.take_along_axis(probabilities, action[:, None], axis=1)[:, 0])
            steps.append((self.observe(state), action, reward, self.observe(following), taken))
            state = following
        # (episodes, horizon, ...) with the steps of an episode one after the other.
        columns = [np.stack(column, axis=1) for column in zip(*steps, strict=True)]
        states, actions, rewards, next_states, taken = (c.reshape(episodes * horizon, *c.shape[2:]) for c in columns)
        return Transitions(
            states,
            actions,
            rewards,
            next_states,
            truncated=np.arange(episodes * horizon) % horizon == horizon - 1,
            episodes=np.repeat(np.arange(episodes), horizon),
            behavior_log_probs=taken,
        )

    def value(self, discount: float, episodes: int = 20_000) -> float:
        """(1−γ) E[Σ γᵗ r] of the target, by a simulation whose error is far below that of a log's estimate."""
        rng = np.random.default_rng(0)
        state, total, factor = self.reset(episodes, rng), 0.0, 1 - discount
        for _ in range(math.ceil(math.log(1e-4) / math.log(discount))):
            action = drawn(self.target.probabilities_at(self.observe(state)), rng)
            state, reward = self.step(state, action, rng)
            total += factor * float(reward.mean())
            factor *= discount
        return total

    def shown_whole(self) -> System:
        """The same system, logged with all of its state; the target looks at the same part as before."""
        return replace(
            self,
            observe=lambda states: states,
            target=DiscretePolicy(
                lambda states: self.target.probabilities_at(self.observe(states)), self.target.num_actions
            ),
        )


def two_actions(probability: Callable[[States], np.ndarray]) -> DiscretePolicy:
    """A policy over two actions, from the probability of the second."""
    return DiscretePolicy(lambda states: np.column_stack([1 - (p := probability(states)), p]), 2)
