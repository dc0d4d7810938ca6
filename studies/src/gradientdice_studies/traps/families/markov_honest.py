"""Honest logs that may look as if the state were not recorded: slow chains, exact moves, several behaviours."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from gradientdice.log.transitions import Transitions
from gradientdice.mdp import TabularMDP
from gradientdice.policies import TabularPolicy
from gradientdice_studies.traps.families.hidden import mass, rotation
from gradientdice_studies.traps.family import Case, Family, Half
from gradientdice_studies.traps.system import System


def families() -> list[Family]:
    """Tables, then continuous states of which all is recorded."""
    return [
        _slow("slow chain, one long run", "develop", 0, 6, 0.97, 5_000),
        _slow("slow chain, 9 states, one long run", "report", 3, 9, 0.95, 8_000),
        _ring("exact moves round a ring", "develop", 8, 100, 30),
        _ring("exact moves round a long ring", "report", 15, 150, 40),
        _mixture("three behaviours, one per episode", "develop", 1, 5, 150, 20),
        _mixture("three behaviours, one per episode, 8 states", "report", 4, 8, 200, 25),
        _system("rotation, whole state", "develop", rotation(0.7, 0.2), 60, 50),
        _system("slow rotation, whole state", "report", rotation(0.4, 0.15), 60, 50),
        _system("mass on a spring, whole state, exact moves", "develop", mass(0.2, 0.0), 50, 40),
        _system("heavier mass on a spring, whole state", "report", mass(0.1, 0.05), 60, 40),
    ]


def _random(seed: int, states: int, stays: float) -> tuple[TabularMDP, np.ndarray]:
    rng = np.random.default_rng(seed)
    moves = rng.dirichlet(np.ones(states), size=(states, 2))
    transition = stays * np.eye(states)[:, None] + (1 - stays) * moves
    mdp = TabularMDP(transition, rng.normal(size=(states, 2)), np.full(states, 1 / states))
    return mdp, rng.dirichlet([2.0, 2.0], size=states)


def _slow(name: str, half: Half, seed: int, states: int, stays: float, rows: int) -> Family:
    """One run of a chain that stays long where it is, without episodes; initial states are given."""
    mdp, target = _random(seed, states, stays)

    def log(rng: np.random.Generator) -> Case:
        data = mdp.rollout(np.full(target.shape, 0.5), 1, rows, rng, noise=0.5)
        starts = rng.integers(0, states, size=500)
        columns = (data.states, data.actions, data.rewards, data.next_states)
        return Case(Transitions(*columns, initial_states=starts), TabularPolicy(target))

    return Family(name, "honest", "table", half, 0.8, lambda: mdp.value(target, 0.8), log)


def _ring(name: str, half: Half, places: int, episodes: int, horizon: int) -> Family:
    """Steps to the left or right that never fail; only the rewards have noise."""
    transition, reward = np.zeros((places, 2, places)), np.zeros((places, 2))
    for place in range(places):
        transition[place, 0, (place - 1) % places] = transition[place, 1, (place + 1) % places] = 1
        reward[place] = np.cos(2 * np.pi * place / places)
    mdp = TabularMDP(transition, reward, np.full(places, 1 / places))
    target = np.tile([0.3, 0.7], (places, 1))

    def log(rng: np.random.Generator) -> Case:
        return Case(mdp.rollout(np.full((places, 2), 0.5), episodes, horizon, rng, noise=0.5), TabularPolicy(target))

    return Family(name, "honest", "table", half, 0.9, lambda: mdp.value(target, 0.9), log)


def _mixture(name: str, half: Half, seed: int, states: int, episodes: int, horizon: int) -> Family:
    """Episodes of three behaviours, each with the probabilities that it had."""
    mdp, target = _random(seed, states, 0.0)
    behaviors = [np.tile([1 - p, p], (states, 1)) for p in (0.3, 0.5, 0.8)]

    def log(rng: np.random.Generator) -> Case:
        parts = [mdp.rollout(behavior, episodes // 3, horizon, rng, noise=0.5) for behavior in behaviors]
        numbered = [replace(part, episodes=np.asarray(part.episodes) + i * episodes) for i, part in enumerate(parts)]
        names = ("states", "actions", "rewards", "next_states", "truncated", "episodes", "behavior_log_probs")
        return Case(
            Transitions(**{name: np.concatenate([getattr(part, name) for part in numbered]) for name in names}),
            TabularPolicy(target),
        )

    return Family(name, "honest", "table", half, 0.9, lambda: mdp.value(target, 0.9), log)


def _system(name: str, half: Half, system: System, episodes: int, horizon: int) -> Family:
    whole = system.shown_whole()

    def log(rng: np.random.Generator) -> Case:
        return Case(whole.log(episodes, horizon, rng), whole.target)

    return Family(name, "honest", "continuous", half, 0.9, cache(lambda: whole.value(0.9)), log)
