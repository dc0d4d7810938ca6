"""Slips in making a log: columns that are a row late, ends that are none, rows left out, wrong probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gradientdice.estimators.trajectory.importance import WPDIS
from gradientdice.log.split import some_rows
from gradientdice.log.transitions import Transitions
from gradientdice_studies.traps.drift import Drift
from gradientdice_studies.traps.families.simulated import Table, normal
from gradientdice_studies.traps.family import Case, Family, Half

Rng = np.random.Generator
DISCOUNT = 0.9


def families() -> list[Family]:
    """Each slip on two tables (or chains), one for each half."""
    found: list[Family] = []
    halves: list[tuple[Half, Table, int, int]] = [
        ("develop", Table(6, 2, seed=31), 100, 30),
        ("report", Table(9, 3, seed=32), 80, 50),
    ]
    for half, table, episodes, steps in halves:

        def plain(rng: Rng, table: Table = table, episodes: int = episodes, steps: int = steps) -> Transitions:
            return table.episodes(episodes, steps, normal(0.3), rng)

        size = f"{table.states}×{table.actions}"
        for slip, change in SLIPS.items():
            found.append(_of_table(f"{slip}, {size}", slip, half, table, _then(plain, change)))
        found.append(_wrong_probabilities(half, table, plain))
    found += [
        _of_drift("rewards a row late, drift", "rewards a row late", "develop", Drift(), _rewards_late),
        _of_drift("rewards a row late, slow drift", "rewards a row late", "report", Drift(carry=0.95), _rewards_late),
        _of_drift("actions a row late, drift", "actions a row late", "develop", Drift(), _actions_late),
        _of_drift("actions a row late, slow drift", "actions a row late", "report", Drift(carry=0.95), _actions_late),
    ]
    return found


def _rewards_late(data: Transitions, rng: Rng) -> Transitions:
    """Each row has the reward of the row before."""
    return replace(data, rewards=_late(data.rewards, data, 0.0))


def _actions_late(data: Transitions, rng: Rng) -> Transitions:
    """Each row has the action of the row before, the first of an episode its own."""
    return replace(data, actions=_late(data.actions, data, None), behavior_log_probs=None)


def _limits_as_ends(data: Transitions, rng: Rng) -> Transitions:
    """Time limits are flagged as ends of the world."""
    return replace(data, truncated=None, terminated=data.truncated)


def _large_left_out(data: Transitions, rng: Rng) -> Transitions:
    """The rows with the largest twentieth of the rewards were taken for outliers."""
    return some_rows(data, np.flatnonzero(data.rewards < np.quantile(data.rewards, 0.95)))


def _shuffled(data: Transitions, rng: Rng) -> Transitions:
    """The rows of the whole log in random order."""
    return some_rows(data, rng.permutation(len(data)))


SLIPS: dict[str, Callable[[Transitions, Rng], Transitions]] = {
    "rewards a row late": _rewards_late,
    "actions a row late": _actions_late,
    "time limits logged as ends": _limits_as_ends,
    "large rewards left out": _large_left_out,
    "rows shuffled": _shuffled,
}


def _of_table(name: str, trap: str, half: Half, table: Table, log: Callable[[Rng], Transitions]) -> Family:
    return Family(
        name, trap, "table", half, DISCOUNT, lambda: table.value(DISCOUNT), lambda rng: Case(log(rng), table.target)
    )


def _of_drift(
    name: str, trap: str, half: Half, chain: Drift, change: Callable[[Transitions, Rng], Transitions]
) -> Family:
    def log(rng: Rng) -> Case:
        plain = chain.episodes(chain.groups(80, chain.shares, rng), 25, rng)
        return Case(change(plain, rng), chain.policy)

    return Family(name, trap, "continuous", half, DISCOUNT, lambda: chain.truth(DISCOUNT), log)


def _wrong_probabilities(half: Half, table: Table, plain: Callable[[Rng], Transitions]) -> Family:
    """The probabilities of another version of the behaviour were logged; the estimator needs the right ones."""

    def log(rng: Rng) -> Case:
        data = plain(rng)
        other = np.roll(table.behavior, 1, axis=0)
        wrong = np.log(other[data.states, data.actions])
        wrong_log = replace(data, behavior_log_probs=wrong)
        return Case(wrong_log, table.target, {"discount": None, "estimator": WPDIS(0.6)})

    name = "probabilities of another policy"
    return Family(f"{name}, {table.states}×{table.actions}", name, "table", half, 0.6, lambda: table.value(0.6), log)


def _then(
    plain: Callable[[Rng], Transitions], change: Callable[[Transitions, Rng], Transitions]
) -> Callable[[Rng], Transitions]:
    return lambda rng: change(plain(rng), rng)


def _late(column: np.ndarray, data: Transitions, first: float | None) -> np.ndarray:
    """The column one row later within each episode."""
    late = np.roll(column, 1)
    assert data.episodes is not None
    begins = np.append(True, data.episodes[1:] != data.episodes[:-1])
    late[begins] = column[begins] if first is None else first
    return late
