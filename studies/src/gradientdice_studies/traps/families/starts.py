"""Few independent units: a handful of initial states that may happen to be alike, or a handful of episodes."""

from __future__ import annotations

import numpy as np

from gradientdice.log.transitions import Transitions
from gradientdice.mdp import TabularMDP
from gradientdice.policies import TabularPolicy
from gradientdice_studies.traps.families.simulated import Rewards, Table, drawn, normal
from gradientdice_studies.traps.family import Case, Family, Half

STARTS, EPISODES = "few initial states", "few episodes"


def families() -> list[Family]:
    """Two to five initial states, four to eight episodes, and enough of both."""
    return [
        *(_lanes(f"{count} starts", STARTS, 0.75, 2, count, 3_000, 0.9, "develop") for count in (2, 3, 5)),
        *(_lanes(f"{count} starts, three lanes", STARTS, 0.7, 3, count, 4_000, 0.8, "report") for count in (2, 4)),
        _lanes("10 starts, mostly one", STARTS, 0.9, 2, 10, 3_000, 0.9, "develop"),
        _lanes("60 starts", "honest", 0.75, 2, 60, 3_000, 0.9, "develop"),
        _lanes("80 starts, three lanes", "honest", 0.7, 3, 80, 4_000, 0.8, "report"),
        _lanes("one start", "honest", 1.0, 2, 1, 3_000, 0.9, "develop"),
        _lanes("100 starts alike", "honest", 1.0, 2, 100, 3_000, 0.9, "develop"),
        _episodes("5 episodes", EPISODES, Table(5, 2, seed=0), 5, 400, 0.9, "develop"),
        _episodes("8 episodes", EPISODES, Table(6, 2, seed=4), 8, 300, 0.9, "report"),
        _episodes("60 episodes", "honest", Table(5, 2, seed=0), 60, 40, 0.9, "develop"),
        _episodes("80 episodes", "honest", Table(6, 2, seed=4), 80, 30, 0.9, "report"),
    ]


def _lanes(
    name: str, trap: str, first: float, lanes: int, starts: int, rows: int, discount: float, half: Half
) -> Family:
    """Episodes begin in one of some lanes, mostly the first, and hardly ever change it; each lane pays differently."""
    mdp, target = _lane_mdp(first, lanes)
    value = mdp.value(target, discount)
    rewards: Rewards = normal(0.5)

    def log(rng: np.random.Generator) -> Case:
        states, actions = rng.integers(mdp.num_states, size=rows), rng.integers(2, size=rows)
        return Case(
            Transitions(
                states,
                actions,
                rewards(mdp.reward[states, actions], rng),
                drawn(mdp.transition[states, actions], rng),
                initial_states=rng.choice(mdp.num_states, size=starts, p=mdp.initial),
            ),
            TabularPolicy(target),
        )

    return Family(
        name=f"{name}, {rows:,} rows",
        trap=trap,
        states="table",
        half=half,
        discount=discount,
        truth=lambda: value,
        log=log,
    )


def _lane_mdp(first: float, lanes: int) -> tuple[TabularMDP, np.ndarray]:
    """Two states a lane; action 1 pays more; one step in twenty goes to the next lane."""
    states = 2 * lanes
    transition, reward, initial = np.zeros((states, 2, states)), np.zeros((states, 2)), np.zeros(states)
    for state in range(states):
        lane = state // 2
        transition[state, :, [2 * lane, 2 * lane + 1]] = 0.475
        transition[state, :, 2 * ((lane + 1) % lanes)] += 0.05
        reward[state] = lane + np.array([0.0, 0.5])
    initial[0::2] = np.append(first, np.full(lanes - 1, (1 - first) / (lanes - 1)))
    return TabularMDP(transition, reward, initial), np.tile([0.3, 0.7], (states, 1))


def _episodes(name: str, trap: str, table: Table, count: int, steps: int, discount: float, half: Half) -> Family:
    return Family(
        name=f"{name} of {steps} steps",
        trap=trap,
        states="table",
        half=half,
        discount=discount,
        truth=lambda: table.value(discount),
        log=lambda rng: Case(table.episodes(count, steps, normal(0.5), rng), table.target),
    )
