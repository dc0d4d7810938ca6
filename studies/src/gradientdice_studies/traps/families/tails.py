"""Heavy tails and rare rewards: a few rows decide the value, and another log would have other ones.

The honest ones are of the same sizes, with rewards that are bounded or have light tails.
"""

from __future__ import annotations

from gradientdice.estimators.trajectory.importance import PDIS, WPDIS
from gradientdice_studies.traps.families.simulated import (
    PushedPoint,
    Rewards,
    Table,
    clicks,
    exponential,
    lognormal,
    normal,
    pareto,
    rare,
)
from gradientdice_studies.traps.family import Case, Family, Half

HEAVY, RARE, CLICKS = "heavy-tailed rewards", "rare large rewards", "rare clicks"


def families() -> list[Family]:
    """Every trap for a table and for continuous states, and honest logs."""
    small, large = Table(5, 2, seed=0), Table(8, 3, seed=1)
    # A contextual bandit: only the first step counts.
    shop, site = Table(10, 4, seed=2, low=0.002, top=0.008), Table(20, 3, seed=3, low=0.004, top=0.008)
    popular, liked = Table(10, 4, seed=2, low=0.2, top=0.4), Table(20, 3, seed=3, low=0.2, top=0.4)
    flat, steep = PushedPoint(), PushedPoint(decay=0.7, push=0.8, slope=0.15, takes=0.7)
    return [
        _table("Pareto(1.2) rewards, 5×2", HEAVY, small, 2_000, 0.9, pareto(1.2), "develop"),
        _table("Pareto(1.3) rewards, 8×3", HEAVY, large, 4_000, 0.95, pareto(1.3), "report"),
        _table("Pareto(2.5) rewards, 5×2", HEAVY, small, 1_000, 0.9, pareto(2.5), "develop"),
        _table("lognormal rewards, deviation 2, 5×2", HEAVY, small, 2_000, 0.8, lognormal(2.0), "develop"),
        _table("lognormal rewards, deviation 1.8, 8×3", HEAVY, large, 3_000, 0.9, lognormal(1.8), "report"),
        _table("1,000 once in 1,000 rows, 5×2", RARE, small, 5_000, 0.9, rare(1000, 1e-3), "develop"),
        _table("500 once in 700 rows, 8×3", RARE, large, 4_000, 0.8, rare(500, 1 / 700), "report"),
        _table("clicks at .5%, bandit 10×4", CLICKS, shop, 2_000, 0.0, clicks, "develop"),
        _table("clicks at .6%, bandit 20×3", CLICKS, site, 3_000, 0.0, clicks, "report"),
        _short("clicks at .5%, WPDIS on 4 steps", CLICKS, shop, 1_000, WPDIS(0.3), "develop"),
        _short("clicks at .6%, PDIS on 5 steps", CLICKS, site, 800, PDIS(0.3), "report"),
        _drift("Pareto(1.2) rewards, one dimension", HEAVY, flat, 150, 10, 0.8, pareto(1.2), "develop"),
        _drift("Pareto(1.3) rewards, steeper", HEAVY, steep, 200, 10, 0.9, pareto(1.3), "report"),
        _drift("200 once in 200 rows, one dimension", RARE, flat, 150, 10, 0.8, rare(200, 5e-3), "develop"),
        _drift("300 once in 300 rows, steeper", RARE, steep, 200, 10, 0.9, rare(300, 1 / 300), "report"),
        _table("clicks at 30%, bandit 10×4", "honest", popular, 2_000, 0.0, clicks, "develop"),
        _table("clicks at 30%, bandit 20×3", "honest", liked, 3_000, 0.0, clicks, "report"),
        _table("clicks at 30%, 10×4", "honest", popular, 3_000, 0.8, clicks, "develop"),
        _table("exponential rewards, 5×2", "honest", small, 1_000, 0.9, exponential, "develop"),
        _table("exponential rewards, 8×3", "honest", large, 3_000, 0.9, exponential, "report"),
        _table("normal rewards, 5×2", "honest", small, 500, 0.9, normal(0.5), "develop"),
        _drift("normal rewards, one dimension", "honest", flat, 150, 10, 0.8, normal(0.5), "develop"),
        _drift("exponential rewards, one dimension", "honest", flat, 150, 10, 0.8, exponential, "develop"),
        _drift("exponential rewards, steeper", "honest", steep, 200, 10, 0.9, exponential, "report"),
    ]


def _table(name: str, trap: str, table: Table, rows: int, discount: float, rewards: Rewards, half: Half) -> Family:
    return Family(
        name=f"{name}, {rows:,} rows",
        trap=trap,
        states="table",
        half=half,
        discount=discount,
        truth=lambda: table.value(discount),
        log=lambda rng: Case(table.log(rows, rewards, rng), table.target),
    )


def _short(name: str, trap: str, table: Table, episodes: int, estimator: WPDIS | PDIS, half: Half) -> Family:
    """Short episodes; what lies beyond them is below 1% of the value."""
    steps = 5 if isinstance(estimator, PDIS) else 4
    options = {"estimator": estimator, "discount": None}
    return Family(
        name=f"{name}, {episodes:,} episodes",
        trap=trap,
        states="table",
        half=half,
        discount=estimator.discount,
        truth=lambda: table.value(estimator.discount),
        log=lambda rng: Case(table.episodes(episodes, steps, clicks, rng), table.target, options),
    )


def _drift(
    name: str, trap: str, drift: PushedPoint, episodes: int, steps: int, discount: float, rewards: Rewards, half: Half
) -> Family:
    return Family(
        name=f"{name}, {episodes * steps:,} rows",
        trap=trap,
        states="continuous",
        half=half,
        discount=discount,
        truth=lambda: drift.value(discount),
        log=lambda rng: Case(drift.log(episodes, steps, rewards, rng), drift.target),
    )
