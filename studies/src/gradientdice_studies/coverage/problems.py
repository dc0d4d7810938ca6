"""MDPs with known values, and the ways they are logged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gradientdice.log.transitions import Transitions
from gradientdice.mdp import TabularMDP, boyan_chain, machine_maintenance, threshold_policy

Rng = np.random.Generator


@dataclass(frozen=True, eq=False)
class Problem:
    """An MDP in which some states may end an episode.

    Attributes:
        name: its name.
        mdp: the chain, in which states from `terminal` on are absorbing and pay nothing.
        terminal: the first terminal state; the number of states if there is none.
        target: the policy to evaluate.
        behavior: the policy that logs.
        noise: the standard deviation of the rewards around their means.
    """

    name: str
    mdp: TabularMDP
    terminal: int
    target: np.ndarray
    behavior: np.ndarray
    noise: float = 0.5

    @property
    def ends(self) -> bool:
        """Whether episodes end."""
        return self.terminal < self.mdp.num_states

    def truth(self, discount: float) -> float:
        """The target's value; at discount 1 ended episodes restart."""
        if discount < 1 or not self.ends:
            return self.mdp.value(self.target, discount)
        k = self.terminal
        inner = (
            self.mdp.transition[:k, :, :k]
            + self.mdp.transition[:k, :, k:].sum(axis=2)[:, :, None] * self.mdp.initial[:k]
        )
        return TabularMDP(inner, self.mdp.reward[:k], self.mdp.initial[:k]).value(self.target[:k], 1.0)

    def independent(self, n: int, rng: Rng) -> Transitions:
        """Independent transitions: uniform states, the behaviour's actions; n initial states."""
        states = rng.integers(0, self.terminal, size=n)
        actions = (rng.random(n)[:, None] > np.cumsum(self.behavior[states], axis=1)).sum(axis=1)
        following = self._next(states, actions, rng)
        initial = rng.choice(self.mdp.num_states, size=n, p=self.mdp.initial)
        return self._transitions(states, actions, following, rng, initial_states=initial)

    def trajectories(self, n: int, rng: Rng) -> Transitions:
        """Episodes of at most 25 steps under the behaviour, n transitions in all (the last may be cut)."""
        episodes, horizon = max(20, n // 4), 25
        state = rng.choice(self.mdp.num_states, size=episodes, p=self.mdp.initial)
        active = np.arange(episodes)
        records = []
        for step in range(horizon):
            action = (rng.random(len(active))[:, None] > np.cumsum(self.behavior[state], axis=1)).sum(axis=1)
            following = self._next(state, action, rng)
            records.append((active, np.full(len(active), step), state, action, following))
            alive = following < self.terminal
            active, state = active[alive], following[alive]
            if not len(active):
                break
        episode, step, state, action, following = (np.concatenate(column) for column in zip(*records, strict=True))
        order = np.lexsort((step, episode))[:n]
        return self._transitions(state[order], action[order], following[order], rng, episodes=episode[order])

    def _next(self, states: np.ndarray, actions: np.ndarray, rng: Rng) -> np.ndarray:
        cumulative = np.cumsum(self.mdp.transition[states, actions], axis=1)
        return np.minimum((rng.random(len(states))[:, None] > cumulative).sum(axis=1), self.mdp.num_states - 1)

    def _transitions(
        self,
        states: np.ndarray,
        actions: np.ndarray,
        following: np.ndarray,
        rng: Rng,
        *,
        initial_states: np.ndarray | None = None,
        episodes: np.ndarray | None = None,
    ) -> Transitions:
        rewards = self.mdp.reward[states, actions] + self.noise * rng.normal(size=len(states))
        ended = following >= self.terminal
        return Transitions(
            states,
            actions,
            rewards,
            np.where(ended, 0, following),
            initial_states=initial_states,
            terminated=ended if self.ends else None,
            episodes=episodes,
        )


def problems() -> dict[str, Callable[[], Problem]]:
    """The suite: four continuing chains and two with episodes that end."""
    return {
        "random 5×2": lambda: _random(0, 5, 2),
        "random 8×3": lambda: _random(1, 8, 3),
        "Boyan, continuing": _boyan,
        "maintenance": _maintenance,
        "ending, random 6×2": lambda: _ending(2, 6, 2),
        "ending, grid 4×4": _grid,
    }


def _mixed(target: np.ndarray, share: float = 0.5) -> np.ndarray:
    return share * target + (1 - share) / target.shape[1]


def _random(seed: int, states: int, actions: int) -> Problem:
    rng = np.random.default_rng(seed)
    mdp = TabularMDP(
        rng.dirichlet(np.ones(states), size=(states, actions)),
        rng.normal(size=(states, actions)),
        rng.dirichlet(np.ones(states)),
    )
    target = rng.dirichlet(np.ones(actions), size=states)
    return Problem(f"random {states}×{actions}", mdp, states, target, _mixed(target))


def _boyan() -> Problem:
    target = np.tile([0.1, 0.9], (13, 1))
    return Problem("Boyan, continuing", boyan_chain("continuing"), 13, target, np.full((13, 2), 0.5))


def _maintenance() -> Problem:
    mdp = machine_maintenance()
    spread = TabularMDP(mdp.transition, mdp.reward, np.full(20, 1 / 20))
    return Problem("maintenance", spread, 20, threshold_policy(3, 8, 0.1), threshold_policy(5, 9, 0.6), noise=1.0)


def _ending(seed: int, states: int, actions: int) -> Problem:
    rng = np.random.default_rng(seed)
    ends = rng.uniform(0.02, 0.2, size=(states, actions))
    transition = np.zeros((states + 1, actions, states + 1))
    transition[:states, :, :states] = rng.dirichlet(np.ones(states), size=(states, actions)) * (1 - ends)[..., None]
    transition[:states, :, states], transition[states, :, states] = ends, 1
    reward = np.vstack([rng.normal(size=(states, actions)), np.zeros(actions)])
    initial = np.append(rng.dirichlet(np.ones(states)), 0)
    target = rng.dirichlet(np.ones(actions), size=states + 1)
    return Problem("ending, random 6×2", TabularMDP(transition, reward, initial), states, target, _mixed(target))


def _grid() -> Problem:
    """A 4 × 4 grid with a goal in the last corner: each step costs, arrival pays and ends the episode."""
    side, states = 4, 15
    transition, reward = np.zeros((states + 1, 4, states + 1)), np.full((states + 1, 4), -0.2)
    for state in range(states):
        row, column = divmod(state, side)
        for action, (down, right) in enumerate(((0, 1), (1, 0), (0, -1), (-1, 0))):
            to = min(max(row + down, 0), side - 1) * side + min(max(column + right, 0), side - 1)
            transition[state, action, to] += 0.85
            transition[state, action, state] += 0.15
            reward[state, action] += 0.85 * (to == states)
    transition[states, :, states], reward[states] = 1, 0
    target = np.tile([0.4, 0.4, 0.1, 0.1], (states + 1, 1))
    initial = np.append(np.full(states, 1 / states), 0)
    return Problem(
        "ending, grid 4×4", TabularMDP(transition, reward, initial), states, target, np.full((states + 1, 4), 0.25)
    )
