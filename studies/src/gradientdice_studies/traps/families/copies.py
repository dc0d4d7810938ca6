"""Rows and episodes that are in the log several times, as a replay buffer or a file that was read twice has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from gradientdice.log.split import some_rows
from gradientdice.log.transitions import Transitions
from gradientdice.policies import Policy, TabularPolicy
from gradientdice_studies.coverage.problems import problems
from gradientdice_studies.traps.drift import Drift
from gradientdice_studies.traps.family import Case, Family, Half

TRAP = "copied rows"
Rng = np.random.Generator


def families() -> list[Family]:
    """Rows drawn with replacement, episodes drawn with replacement, a log read several times, a few rows twice."""
    slow = Drift(0.95, 0.2, 0.05, 0.4, (0.0, 3.0), (0.9, 0.1), 0.3)
    return [
        _table("random 5×2", "a buffer's draws", 0.9, "develop", lambda p, rng: drawn_rows(p(1_000), 3_000, rng)),
        _table("maintenance", "read twice", 0.9, "develop", lambda p, rng: drawn_rows(p(2_000), 4_000)),
        _table("random 8×3", "a buffer's draws", 0.8, "report", lambda p, rng: drawn_rows(p(3_000), 6_000, rng)),
        _table("ending, random 6×2", "read thrice", 0.95, "report", lambda p, rng: drawn_rows(p(1_500), 4_500)),
        _table("random 5×2", "1% twice", 0.9, "develop", lambda p, rng: drawn_rows(p(3_000), 3_030)),
        _table("Boyan, continuing", "1.5% twice", 0.9, "report", lambda p, rng: drawn_rows(p(4_000), 4_060)),
        _chain("drift, rows drawn again", Drift(), "develop", lambda c, rng: drawn_rows(c.rows(700, rng), 2_000, rng)),
        _chain("slow drift, read twice", slow, "report", lambda c, rng: drawn_rows(c.rows(1_000, rng), 2_000)),
        _chain("drift, 1% twice", Drift(), "develop", lambda c, rng: drawn_rows(c.rows(2_000, rng), 2_020)),
        _chain("drift, episodes drawn again", Drift(), "develop", lambda c, rng: _again(c, 50, 120, rng)),
        _chain("slow drift, episodes drawn again", slow, "report", lambda c, rng: _again(c, 60, 100, rng)),
    ]


def drawn_rows(data: Transitions, count: int, rng: Rng | None = None) -> Transitions:
    """Rows drawn with replacement; without a generator, all in order and again from the first."""
    chosen = np.resize(np.arange(len(data)), count) if rng is None else rng.integers(0, len(data), size=count)
    return _rows(data, chosen)


def drawn_episodes(data: Transitions, count: int, rng: Rng) -> Transitions:
    """Episodes of equal length drawn with replacement, each draw with a number of its own."""
    episodes = np.asarray(data.episodes)
    length = int(np.sum(episodes == episodes[0]))
    chosen = rng.integers(0, episodes.max() + 1, size=count)
    rows = (chosen[:, None] * length + np.arange(length)).ravel()
    return _rows(data, rows, np.repeat(np.arange(count), length))


def _again(chain: Drift, episodes: int, count: int, rng: Rng) -> Transitions:
    return drawn_episodes(chain.episodes(chain.groups(episodes, chain.shares, rng), 20, rng), count, rng)


def _rows(data: Transitions, rows: np.ndarray, episodes: np.ndarray | None = None) -> Transitions:
    return replace(some_rows(data, rows), episodes=episodes)


def _table(
    name: str, how: str, discount: float, half: Half, log: Callable[[Callable[[int], Transitions], Rng], Transitions]
) -> Family:
    problem = problems()[name]()
    policy = TabularPolicy(problem.target[: problem.terminal])
    return _family(
        f"{name}, {how}",
        "table",
        half,
        discount,
        lambda: problem.truth(discount),
        lambda rng: Case(log(lambda rows: problem.independent(rows, rng), rng), policy),
    )


def _chain(name: str, chain: Drift, half: Half, log: Callable[[Drift, Rng], Transitions]) -> Family:
    policy: Policy = chain.policy
    return _family(name, "continuous", half, 0.9, lambda: chain.truth(0.9), lambda rng: Case(log(chain, rng), policy))


def _family(
    name: str,
    states: Literal["table", "continuous"],
    half: Half,
    discount: float,
    truth: Callable[[], float],
    log: Callable[[Rng], Case],
) -> Family:
    return Family(name, TRAP, states, half, discount, truth, log)
