"""Honest logs: the state is recorded, rows are what they seem, and there are enough of them."""

from __future__ import annotations

from gradientdice.experiments.coverage.problems import problems
from gradientdice.experiments.traps.family import Case, Family, Half
from gradientdice.policies import TabularPolicy


def families() -> list[Family]:
    """Tables logged in episodes."""
    return [
        _table("random 5×2", 3_000, 0.9, "develop"),
        _table("random 8×3", 5_000, 0.9, "report"),
        _table("maintenance", 5_000, 0.95, "develop"),
        _table("ending, random 6×2", 3_000, 0.95, "report"),
    ]


def _table(name: str, rows: int, discount: float, half: Half) -> Family:
    problem = problems()[name]()
    policy = TabularPolicy(problem.target[: problem.terminal])
    return Family(
        name=f"{name}, {rows:,} rows",
        trap="honest",
        states="table",
        half=half,
        discount=discount,
        truth=lambda: problem.truth(discount),
        log=lambda rng: Case(problem.trajectories(rows, rng), policy),
    )
