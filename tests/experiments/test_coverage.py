"""The coverage experiment: its problems are what they say, its table counts right, it resumes."""

import numpy as np
import pandas as pd
import pytest

from gradientdice.experiments.coverage import run as experiment
from gradientdice.experiments.coverage.page import write_page
from gradientdice.experiments.coverage.problems import problems
from gradientdice.experiments.coverage.run import Cell, Scale, cells, run_cell


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
    frame = run_cell(Cell("random 5×2", 0.9, 300, "right", "independent"), 40).set_index("method")
    assert set(frame.index) == {"normal", "bootstrap", "likelihood"}
    assert (frame["answered"] + frame["refused"] == 40).all()
    assert frame["coverage"].between(0.75, 1.0).all() and (frame["width"] > 0).all()
    wrong = run_cell(Cell("random 8×3", 0.9, 3000, "misspecified", "independent"), 10)
    assert wrong["coverage"].iloc[0] < 0.5, "wrong features are seen to be wrong"


def test_it_resumes_and_writes_its_page(tmp_path, monkeypatch):
    few = list(cells())[:2]
    monkeypatch.setattr(experiment, "cells", lambda: iter(few))
    _, table = experiment.run(tmp_path / "out", Scale(replications=3))
    done = []
    monkeypatch.setattr(experiment, "run_cell", lambda *arguments: done.append(arguments))
    _, again = experiment.run(tmp_path / "out", Scale(replications=3))
    assert done == []
    pd.testing.assert_frame_equal(table, again)


def test_the_page_reads_only_the_table(tmp_path):
    frame = pd.concat(
        [run_cell(cell, 2) for cell in cells() if cell.problem == "random 5×2" and cell.discount == 0.9],
        ignore_index=True,
    )
    write_page(tmp_path / "page.md", frame, Scale(replications=2))
    text = (tmp_path / "page.md").read_text()
    assert "n ≥ 1,000" in text and "bootstrap" in text and "nan" not in text
