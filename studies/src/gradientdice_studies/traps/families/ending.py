"""Episodes that end soon, at a discount near 1: most of the target's mass lies behind the end, where nothing is paid.

The value is (1−γ)-normalised, hence as small as the mass on the rows.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np

from gradientdice.log.transitions import Transitions
from gradientdice.mdp import TabularMDP
from gradientdice.policies import DiscretePolicy, TabularPolicy
from gradientdice_studies.coverage.problems import Problem
from gradientdice_studies.traps.family import Case, Family, Half

TRAP = "episodes that end, discount near 1"
EPISODES_OF_TRUTH = 100_000
LONGEST = 400


def families() -> list[Family]:
    """Tables with exact values, and walks on a line."""
    return [
        _table("ending 6×2", 21, 6, 2, 2_000, 0.99, "develop"),
        _table("ending 12×3", 22, 12, 3, 4_000, 0.999, "develop"),
        _table("ending 9×2", 23, 9, 2, 3_000, 0.995, "report"),
        _walk("walk", 0.2, 1.0, "position", 1_500, 0.999, "develop"),
        _walk("walk, paid at the end", 0.2, 1.0, "arrival", 1_500, 0.99, "develop"),
        _walk("longer walk", 0.15, 1.2, "position", 2_000, 0.998, "report"),
        _walk("longer walk, paid at the end", 0.25, 1.5, "arrival", 1_200, 0.995, "report"),
    ]


def _table(name: str, seed: int, states: int, actions: int, rows: int, discount: float, half: Half) -> Family:
    """Each step ends the episode with a probability of 5% to 30%."""
    rng = np.random.default_rng(seed)
    ends = rng.uniform(0.05, 0.3, size=(states, actions, 1))
    transition = np.zeros((states + 1, actions, states + 1))
    transition[:states] = np.concatenate(
        [rng.dirichlet(np.ones(states), size=(states, actions)) * (1 - ends), ends], axis=2
    )
    transition[states, :, states] = 1
    reward = np.vstack([rng.normal(size=(states, actions)), np.zeros(actions)])
    initial = np.append(rng.dirichlet(np.ones(states)), 0)
    target = rng.dirichlet(np.ones(actions), size=states + 1)
    behavior = 0.5 * target + 0.5 / actions
    problem = Problem(name, TabularMDP(transition, reward, initial), states, target, behavior)
    return Family(
        name=f"{name}, γ = {discount:g}",
        trap=TRAP,
        states="table",
        half=half,
        discount=discount,
        truth=lambda: problem.truth(discount),
        log=lambda rng: Case(problem.trajectories(rows, rng), TabularPolicy(target[:states])),
    )


def _walk(
    name: str,
    step: float,
    edge: float,
    pays: Literal["position", "arrival"],
    rows: int,
    discount: float,
    half: Half,
) -> Family:
    """Steps to the left or right, with noise, until the walk is beyond an edge; the target leans to the right."""

    @cache
    def truth() -> float:
        rng = np.random.default_rng(0)
        walks = _walked(_leaning(0.8), EPISODES_OF_TRUTH, step, edge, pays, rng)
        return (1 - discount) * sum(discount**time * rewards.sum() for time, (*_, rewards) in enumerate(walks)) / (
            EPISODES_OF_TRUTH
        )  # fmt: skip

    def log(rng: np.random.Generator) -> Case:
        # More episodes than the rows can hold; the last is cut.
        walks = _walked(_leaning(0.0), rows, step, edge, pays, rng)
        columns = [np.concatenate(column) for column in zip(*walks, strict=True)]
        episodes, times = columns[0], np.concatenate([np.full(len(walk[0]), t) for t, walk in enumerate(walks)])
        order = np.lexsort((times, episodes))[:rows]
        number, states, actions, following, ended, rewards = (column[order] for column in columns)
        data = Transitions(
            states[:, None], actions, rewards, following[:, None], terminated=ended, episodes=number
        )  # fmt: skip
        return Case(data, _leaning(0.8))

    return Family(
        name=f"{name}, γ = {discount:g}",
        trap=TRAP,
        states="continuous",
        half=half,
        discount=discount,
        truth=truth,
        log=log,
    )


def _leaning(lean: float) -> DiscretePolicy:
    def probabilities(states: np.ndarray) -> np.ndarray:
        right = 1 / (1 + np.exp(-(lean + states[:, 0])))
        return np.column_stack([1 - right, right])

    return DiscretePolicy(probabilities, 2)


def _walked(
    policy: DiscretePolicy, episodes: int, step: float, edge: float, pays: str, rng: np.random.Generator
) -> list[tuple[np.ndarray, ...]]:
    """For each time the episodes that still go on: number, state, action, next state, whether it ends, reward."""
    state, active, walks = rng.uniform(-0.3, 0.3, size=episodes), np.arange(episodes), []
    for _ in range(LONGEST):
        action = (rng.random(len(state)) < policy.probabilities_at(state[:, None])[:, 1]).astype(np.int64)
        following = state + step * (2 * action - 1) + 0.15 * rng.normal(size=len(state))
        ended = np.abs(following) > edge
        rewards = state if pays == "position" else (following > edge).astype(np.float64)
        walks.append((active, state, action, following, ended, rewards))
        active, state = active[~ended], following[~ended]
        if not len(active):
            break
    return walks
