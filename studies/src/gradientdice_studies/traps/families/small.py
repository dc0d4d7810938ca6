"""Tables with few rows for each pair: each pair's mean is fitted to its own few rows."""

from __future__ import annotations

import numpy as np

from gradientdice.log.transitions import Transitions
from gradientdice_studies.traps.families.simulated import Rewards, Table, drawn, exponential, normal
from gradientdice_studies.traps.family import Case, Family, Half

FEW = "few rows for each pair"


def families() -> list[Family]:
    """Every pair logged once, twice, some times or often."""
    wide, wider = Table(150, 2, seed=5, peaked=0.5), Table(120, 3, seed=6, peaked=0.5)
    return [
        _equal("once or twice", FEW, wide, (1, 2), 0.5, normal(0.5), "develop"),
        _equal("twice", FEW, wide, (2,), 0.5, normal(0.5), "develop"),
        _equal("twice", FEW, wide, (2,), 0.9, normal(0.5), "develop"),
        _equal("twice", FEW, wider, (2,), 0.8, exponential, "report"),
        _equal("three times", FEW, wide, (3,), 0.8, normal(0.5), "develop"),
        _equal("two to four times", FEW, wider, (2, 3, 4), 0.9, normal(0.5), "report"),
        _equal("ten times", "honest", wide, (10,), 0.9, normal(0.5), "develop"),
        _equal("eight to twelve times", "honest", wider, (8, 12), 0.8, normal(0.5), "report"),
    ]


def _equal(
    name: str, trap: str, table: Table, times: tuple[int, ...], discount: float, rewards: Rewards, half: Half
) -> Family:
    """Every pair is logged a given number of times (in turns, where there are several numbers)."""
    mdp = table.mdp
    pairs = np.repeat(np.arange(table.states * table.actions), np.resize(times, table.states * table.actions))
    states, actions = np.divmod(pairs, table.actions)

    def log(rng: np.random.Generator) -> Case:
        return Case(
            Transitions(
                states,
                actions,
                rewards(mdp.reward[states, actions], rng),
                drawn(mdp.transition[states, actions], rng),
                initial_states=rng.choice(table.states, size=500, p=mdp.initial),
            ),
            table.target,
        )

    return Family(
        name=f"{table.states}×{table.actions}, each pair {name}, discount {discount:g}",
        trap=trap,
        states="table",
        half=half,
        discount=discount,
        truth=lambda: table.value(discount),
        log=log,
    )
