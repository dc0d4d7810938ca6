"""The coverage experiment: its problems are what they say, its table counts right, it resumes."""

import numpy as np
import pandas as pd
import pytest

from gradientdice_studies.coverage import run as experiment
from gradientdice_studies.coverage.problems import problems
from gradientdice_studies.coverage.run import Cell, Scale, cells, run_cell
from gradientdice_studies.frames import column


@pytest.mark.parametrize("name", problems())
@pytest.mark.parametrize("logging", ["independent", "trajectories"])
def test_logs_follow_the_model(name, logging, rng):
    problem = problems()[name]()
    data = getattr(problem, logging)(4000, rng)
    assert len(data) == 4000 and data.states.max() < problem.terminal
    pair = (data.states == data.states[0]) & (data.actions == data.actions[0])
    expected = problem.mdp.reward[data.states[0], data.actions[0]]
    assert data.rewards[pair].mean() == pytest.approx(expected, abs=5 * problem.noise / np.sqrt(pair.sum()))
    if problem.ends:
        ends = problem.mdp.transition[data.states, data.actions, problem.terminal :].sum(axis=1).mean()
        assert data.terminated.mean() == pytest.approx(ends, abs=5 * np.sqrt(ends / 4000))
    if logging == "trajectories":
        inner = np.diff(data.episodes) == 0
        assert (data.next_states[:-1][inner] == data.states[1:][inner]).all()


def test_the_suite_has_what_it_must():
    suite = [make() for make in problems().values()]
    assert len(suite) >= 5 and sum(problem.ends for problem in suite) >= 2
    grid = list(cells())
    assert len(grid) == len(suite) * 3 * 4 * 2 * 2 and len({cell.name for cell in grid}) == len(grid)


def test_a_cell_counts_what_it_did():
    frame = run_cell(Cell("random 5×2", 0.9, 300, "right", "independent"), Scale(40, 10)).set_index("method")
    assert set(frame.index) == {"default", "normal", "bootstrap", "likelihood", "evaluate"}
    counted = (column(frame, "answered") + column(frame, "refused")).to_dict()
    assert counted.pop("evaluate") == 10 and set(counted.values()) == {40}
    inside, trusted = frame.to_dict()["trusted_inside"]["evaluate"], frame.to_dict()["trusted"]["evaluate"]
    assert 0 < inside <= trusted <= 10
    assert set(column(frame, "trusted").drop("evaluate")) == {0}
    assert column(frame, "coverage").between(0.75, 1.0).all() and column(frame, "width").min() > 0
    wrong = run_cell(Cell("random 8×3", 0.9, 3000, "misspecified", "independent"), Scale(10, 0))
    assert wrong["coverage"].iloc[0] < 0.5, "wrong features are seen to be wrong"


def test_it_resumes(tmp_path, monkeypatch):
    few = list(cells())[:2]
    monkeypatch.setattr(experiment, "cells", lambda: iter(few))
    _, table = experiment.run(tmp_path / "out", Scale(replications=3, verdicts=1))
    done = []
    monkeypatch.setattr(experiment, "run_cell", lambda *arguments: done.append(arguments))
    _, again = experiment.run(tmp_path / "out", Scale(replications=3, verdicts=1))
    assert done == []
    pd.testing.assert_frame_equal(table, again)


@pytest.fixture
def made_up():
    """One problem at one discount: 95% everywhere, but 90% and two refusals with independent rows and n = 3,000."""
    rows = [
        {
            **vars(cell),
            "method": method,
            "answered": 98 if cell.rows == 3000 else 100,
            "refused": 2 if cell.rows == 3000 else 0,
            "coverage": 0.9 if cell.rows == 3000 and cell.logging == "independent" else 0.95,
            "width": 0.1,
            "trusted": 50,
            "trusted_inside": 48,
        }
        for cell in cells()
        if cell.problem == "random 5×2" and cell.discount == 0.9
        for method, (_, largest) in {**experiment.METHODS, experiment.WHOLE: (None, 10_000)}.items()
        if cell.rows <= largest
    ]
    return pd.DataFrame(rows)


def test_the_page_counts_the_cells_that_cover(made_up, page):
    text = page("coverage", made_up, Scale(replications=100))
    assert "**Right features, n ≥ 1,000:** 5 of 6 cells" in " ".join(text.split())
    assert "| random 5×2 | 0.9 | 3000 | independent | 90.0% | 2 |" in text
    assert "Not counted" not in text and "| 95.0%, 0.1 | 90.0%, 0.1 (2) | 95.0%, 0.1 |" in text
    assert "| bootstrap | 300 | 95.0% | 95.0% | 95.0% |" in text
    assert "| right | 1,000 | 200 | 95.0% | 50.0% | 96.0% |" in text
    assert "trusted, 768 of 800 (96.0%) hold the truth" in " ".join(text.split())


def test_cells_with_few_answers_are_counted_apart(made_up, page):
    made_up.loc[made_up["rows"] == 10_000, ["answered", "refused", "coverage", "width"]] = [0, 100, np.nan, np.nan]
    made_up = made_up.astype({"answered": int, "refused": int})
    text = page("coverage", made_up, Scale(replications=100))
    assert "3 of 4 cells" in " ".join(text.split()) and "Not counted there: 2 cells" in text
    assert "| random 5×2 | 0.9 | 10000 | trajectories | 0 | — |" in text and "(100 refused)" in text
