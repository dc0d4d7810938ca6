"""The Boyan experiment: its grid is the paper's, its runs resume, its page and figures are there."""

import numpy as np
import pandas as pd
import pytest

import gradientdice as gd
from gradientdice.dice.stochastic.training import run_groups
from gradientdice_studies.boyan import run as experiment
from gradientdice_studies.boyan.analysis import select
from gradientdice_studies.boyan.figures import draw_all
from gradientdice_studies.boyan.grid import FULL, PAPER, QUICK, Scale, cells

TINY = Scale(steps=200, record_every=20, runs=3)


def test_the_grid_is_the_papers():
    paper = [case for cell in cells(FULL, paper_only=True) for case in cell.cases]
    assert len(paper) * FULL.runs == 9720
    rows = pd.DataFrame([case.columns() for case in paper])
    assert set(rows["discount"]) == {0.1, 0.3, 0.5, 0.7, 0.9, 1.0}
    assert set(rows["learning_rate"]) == {4.0**-k for k in range(1, 7)}
    assert set(rows[rows["discount"] == 1]["ridge"]) == {0.0, 1e-3, 1e-2, 1e-1}
    assert set(rows[rows["discount"] < 1]["ridge"]) == {0.0}
    assert not rows.duplicated().any()
    everything = [case for cell in cells(FULL) for case in cell.cases]
    assert [case for case in everything if case.study == PAPER] and len(everything) > len(paper)
    assert QUICK.steps < FULL.steps


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("boyan")
    store, tables = experiment.run(folder / "out", TINY)
    return folder / "out", store, tables


@pytest.mark.slow
def test_tables_have_every_run_and_no_nan(tiny):
    folder, _, tables = tiny
    assert len(tables.runs) == sum(len(cell.cases) for cell in cells(TINY)) * 3
    assert tables.runs["final_error"].notna().all()
    assert len(tables.steps) == 10 and all(len(curve) == 10 for curve in tables.runs["curve"])
    again = pd.read_parquet(folder / "runs.parquet")
    assert again.attrs["provenance"]["seeds"] == [0, 1, 2]
    csv = pd.read_csv(folder / "runs.csv", index_col=0)
    np.testing.assert_allclose(csv["final_error"], tables.runs["final_error"])
    assert {"curves.csv", "closed_form.parquet", "manifest.json"} <= {path.name for path in folder.iterdir()}


@pytest.mark.slow
def test_an_interrupted_run_resumes_with_the_same_numbers(tiny, monkeypatch):
    folder, _, tables = tiny
    runs = [path for path in sorted((folder / "parts").iterdir()) if path.name != "closed-form.parquet"]
    runs[3].unlink()
    computed = []
    monkeypatch.setattr(
        experiment, "run_groups", lambda groups, seeds: computed.append(len(groups)) or run_groups(groups, seeds)
    )
    _, again = experiment.run(folder, TINY)
    assert computed == [1], "only the missing part was computed"
    np.testing.assert_array_equal(again.runs["final_error"], tables.runs["final_error"])


@pytest.mark.slow
def test_other_settings_do_not_overwrite_without_force(tiny):
    folder, _, _ = tiny
    before = (folder / "runs.parquet").read_bytes()
    with pytest.raises(gd.InputError, match="--force"):
        experiment.run(folder, Scale(steps=100, record_every=20, runs=2))
    assert (folder / "runs.parquet").read_bytes() == before


def test_a_few_programs_of_the_grid(tmp_path, monkeypatch):
    """The whole path with two of its 24 programs; the slow tests run them all, with figures and page."""
    few = [cell for cell in cells(TINY) if cell.cases[0].study == PAPER][:2]
    monkeypatch.setattr(experiment, "cells", lambda scale: few)
    _, tables = experiment.run(tmp_path / "out", TINY)
    assert len(tables.runs) == sum(len(cell.cases) for cell in few) * 3
    assert not np.isnan(np.asarray(tables.runs["final_error"])).any()
    assert np.isfinite(np.asarray(tables.closed_form["error"])).all()
    monkeypatch.setattr(
        experiment, "run_groups", lambda groups, seeds: iter(()) if not groups else pytest.fail("again")
    )
    _, again = experiment.run(tmp_path / "out", TINY)
    np.testing.assert_array_equal(again.runs["final_error"], tables.runs["final_error"])
    with pytest.raises(gd.InputError, match="--force"):
        experiment.run(tmp_path / "out", Scale(steps=100, record_every=20, runs=2))


def test_foreign_files_are_safe(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(gd.InputError, match="other files"):
        experiment.run(tmp_path, TINY)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.slow
def test_figures_and_page(tiny, page):
    _, store, tables = tiny
    figures = draw_all(store, tables)
    assert len(figures) == 6
    for path in figures.values():
        assert path.stat().st_size > 10_000 and path.with_suffix(".pdf").exists()
    text = page("boyan", tables, TINY, figures=figures)
    for claim in ("4 of 6", "5 of 6", "more stable", "best at γ = 0.1", "λ has little influence", "ξ > 0 is necessary"):
        assert len([line for line in text.splitlines() if line.startswith("|") and claim in line]) == 1
    # 1.0 is the highest discount, and a table without a ridge has no bias: the exact errors are rounding.
    exact = next(line for line in text.splitlines() if line.startswith("| GradientDICE, exact solve"))
    assert len(exact.split("|")) == 9 and all(float(cell) < 1e-20 for cell in exact.split("|")[2:-1])


def test_selection_takes_the_lowest_mean_and_never_a_diverged_one():
    base = {
        "study": PAPER,
        "representation": "tabular",
        "learner": "GenDICE",
        "init": "i",
        "norm_penalty": 1.0,
        "discount": 0.5,
    }
    runs = pd.DataFrame(
        [
            {**base, "learning_rate": rate, "ridge": 0.0, "final_error": error}
            for rate, errors in ((0.1, [0.0, np.inf]), (0.2, [2.0, 4.0]), (0.3, [3.5, 3.5]))
            for error in errors
        ]
    )
    chosen = select(runs)
    assert chosen["learning_rate"].tolist() == [0.2] and chosen["mean"].tolist() == [3.0]
    assert chosen["standard_error"].iloc[0] == pytest.approx(1.0)
