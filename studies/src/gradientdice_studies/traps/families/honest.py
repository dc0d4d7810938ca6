"""Honest logs: the state is recorded, rows are what they seem, and there are enough of them."""

from __future__ import annotations

from gradientdice.policies import TabularPolicy
from gradientdice_studies.coverage.problems import problems
from gradientdice_studies.traps.family import Case, Family, Half


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
