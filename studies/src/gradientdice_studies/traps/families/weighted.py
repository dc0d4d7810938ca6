"""Stratified logs: episodes from some starts were logged more often than they occur, and weights put that right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gradientdice.mdp import TabularMDP
from gradientdice.policies import TabularPolicy
from gradientdice_studies.coverage.problems import problems
from gradientdice_studies.traps.drift import Drift
from gradientdice_studies.traps.family import Case, Family, Half

TRAP = "weighted episodes"


def families() -> list[Family]:
    """Tables and a continuous chain, with starts that matter."""
    return [
        _table("maintenance", 4_000, 0.9, "develop"),
        _table("ending, random 6×2", 3_000, 0.8, "develop"),
        _table("ending, grid 4×4", 4_000, 0.9, "report"),
        _table("Boyan, continuing", 5_000, 0.8, "report"),
        _chain("drift", Drift(), (0.5, 0.5), 100, "develop"),
        _chain("slow drift", Drift(0.95, 0.2, 0.05, 0.4, (0.0, 3.0), (0.9, 0.1), 0.3), (0.4, 0.6), 120, "report"),
    ]


def _table(name: str, rows: int, discount: float, half: Half) -> Family:
    """Starts in the upper half of the states are logged six times as often as they occur."""
    problem = problems()[name]()
    initial = problem.mdp.initial
    often = initial * np.where(np.arange(len(initial)) >= problem.terminal / 2, 6.0, 1.0)
    often /= often.sum()
    logged = replace(problem, mdp=TabularMDP(problem.mdp.transition, problem.mdp.reward, often))
    policy = TabularPolicy(problem.target[: problem.terminal])

    def log(rng: np.random.Generator) -> Case:
        data = logged.trajectories(rows, rng)
        _, first, episode = np.unique(np.asarray(data.episodes), return_index=True, return_inverse=True)
        start = data.states[first]
        return Case(replace(data, weights=(initial[start] / often[start])[episode]), policy)

    return Family(
        name=f"{name}, strata of starts",
        trap=TRAP,
        states="table",
        half=half,
        discount=discount,
        truth=lambda: problem.truth(discount),
        log=log,
    )


def _chain(name: str, chain: Drift, logged: tuple[float, ...], episodes: int, half: Half) -> Family:
    """Both groups of starts are logged by other shares than their own."""

    def log(rng: np.random.Generator) -> Case:
        group = chain.groups(episodes, logged, rng)
        weights = (np.array(chain.shares) / np.array(logged))[group]
        data = chain.episodes(group, 20, rng)
        return Case(replace(data, weights=weights[np.asarray(data.episodes)]), chain.policy)

    return Family(
        name=f"{name}, strata of starts",
        trap=TRAP,
        states="continuous",
        half=half,
        discount=0.9,
        truth=lambda: chain.truth(0.9),
        log=log,
    )
