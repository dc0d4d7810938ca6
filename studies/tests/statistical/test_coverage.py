"""Intervals cover as often as they say: two-sided, with fixed seeds."""

import pytest

from gradientdice_studies.coverage.run import Cell, Scale, run_cell

CELLS = [
    Cell(problem, discount, rows, "right", logging)
    for problem, logging in (
        ("random 5×2", "independent"),
        ("Boyan, continuing", "trajectories"),
        ("ending, random 6×2", "independent"),
        ("ending, random 6×2", "trajectories"),
    )
    for discount in (0.9, 1.0)
    for rows in (1_000, 3_000)
]


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_normal_intervals_cover(cell):
    frame = run_cell(cell, Scale(replications=1000, verdicts=0)).set_index("method")
    assert 0.93 <= frame.loc["normal", "coverage"] <= 0.97
