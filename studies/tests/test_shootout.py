"""The shootout: its benchmarks' logs and truths, one cell as it is run, and the page from a made-up table."""

import numpy as np
import pandas as pd
import pytest

import gradientdice as gd
from gradientdice.functions.tabular import Tabular
from gradientdice_studies.frames import column, records, rows_where
from gradientdice_studies.markdown import number
from gradientdice_studies.shootout import analysis, figures, run
from gradientdice_studies.shootout.control import CONTROL
from gradientdice_studies.shootout.problems import TABULAR
from gradientdice_studies.store import ResultStore

SMALL = [name for name in TABULAR if name not in ("taxi", "page-rank")]


@pytest.mark.parametrize("name", [*SMALL, "cart-pole", "pendulum"])
def test_a_log_of_the_target_itself_has_the_true_value(name):
    """With overlap 1 the behaviour is the target, so that the mean of discounted episodes is the truth."""
    problem = run.PROBLEMS[name]()
    discount = problem.discounts[0]
    rows = 20_000
    data = problem.log(rows, 1.0, np.random.default_rng(0))
    assert len(data) == rows and data.episodes is not None
    _, first, episode = np.unique(data.episodes, return_index=True, return_inverse=True)
    step = np.arange(rows) - first[episode]
    returns = np.bincount(episode, (1 - discount) * discount**step * data.rewards)[:-1]
    value, error = problem.truth(discount) if name != "cart-pole" else (0.632, 0.002)
    spread = np.hypot(returns.std() / np.sqrt(len(returns)), error)
    cut = discount**100 * np.abs(data.rewards).max()  # what the time limit leaves out
    assert abs(returns.mean() - value) < 4.5 * spread + cut


@pytest.mark.parametrize("name", ["boyan", "cart-pole"])
def test_the_average_of_a_log_of_the_target_is_the_truth(name):
    problem = run.PROBLEMS[name]()
    data = problem.log(40_000, 1.0, np.random.default_rng(1))
    value, _ = problem.truth(1.0) if name == "boyan" else (0.850, 0.001)
    assert data.rewards.mean() == pytest.approx(value, abs=0.06 if name == "boyan" else 0.01)


def test_more_overlap_is_nearer_to_the_target():
    problem = TABULAR["grid-walk"]()
    target = np.asarray(problem.policy)
    chances = []
    for overlap in (0.0, 0.8):
        data = problem.log(2_000, overlap, np.random.default_rng(0))
        chances.append(np.mean(np.log(target[data.states, data.actions]) - data.behavior_log_probs))
    assert chances[0] < chances[1] < 0


def test_the_large_ones_have_their_sizes():
    assert TABULAR["taxi"]().functions == Tabular(2_000, 6)
    pages = TABULAR["page-rank"]()
    assert pages.functions == Tabular(100_000, 2) and pages.sizes[1] == 1_000_000
    assert set(CONTROL) == {"cart-pole", "pendulum", "reacher"}


def test_a_cell_has_a_row_for_every_estimator():
    rows = run.answers(run.Cell("boyan", 0.95, 1_000, 0.4, 0))
    names = [row["estimator"] for row in rows]
    assert len(names) == len(set(names)) == len(gd.ESTIMATORS) + 1
    assert sum(row["chosen"] for row in rows) == 1
    for row in rows:
        assert (row["value"] is None) == row["note"].startswith("not applicable")
    by_name = {row["estimator"]: row for row in rows}
    assert by_name["LSTDQ"]["value"] == pytest.approx(by_name["GradientDICE"]["value"], rel=1e-8)
    assert by_name["BlackBox"]["value"] is None


@pytest.mark.slow
def test_the_two_without_a_closed_form_are_exact_with_a_table_and_learned_with_features():
    cell = run.Cell("boyan", 0.95, 1_000, 0.4, 0)
    exact = {row["estimator"]: row for row in run.saddle_points(cell)}
    own = next(row for row in run.answers(cell) if row["estimator"] == "GradientDICE")
    for row in exact.values():
        assert row["value"] == pytest.approx(own["value"], rel=1e-8) and row["low"] < row["value"] < row["high"]
    average = run.saddle_points(run.Cell("boyan", 1.0, 1_000, 0.4, 0))
    assert average[0]["value"] is not None and average[1]["note"].startswith("not applicable")
    learned = run.saddle_points(run.Cell("baird", 0.95, 1_000, 0.4, 0))
    assert set(learned[0]) == set(own) and all(row["low"] is None for row in learned)


@pytest.fixture
def frame():
    rng, rows = np.random.default_rng(0), []
    for problem, discount in (("boyan", 0.95), ("boyan", 1.0), ("model-fail", 0.95), ("pendulum", 0.95)):
        for size in (1_000, 10_000):
            for overlap in (0.0, 0.8):
                for seed in range(8):
                    for name, scale in (
                        ("GradientDICE", 1.0),
                        ("WPDIS", 3.0),
                        ("WDR", 2.0),
                        ("MAGIC", 0.5),
                        ("GEM", 1.5),
                    ):
                        missing = name == "MAGIC" and seed == 0
                        value = 1.0 + scale * rng.normal() / np.sqrt(size)
                        rows.append(
                            {
                                "problem": problem,
                                "discount": discount,
                                "rows": size,
                                "overlap": overlap,
                                "seed": seed,
                                "estimator": name,
                                "value": None if missing else value,
                                "low": None if missing else value - 2 * scale / np.sqrt(size),
                                "high": None if missing else value + 2 * scale / np.sqrt(size),
                                "verdict": "" if missing else "trust",
                                "seconds": 0.1,
                                "note": "not applicable: made up" if missing else "",
                                "chosen": name == "GradientDICE",
                                "truth": 1.0,
                                "truth_error": 0.0,
                            }
                        )
    return pd.DataFrame(rows)


def test_only_what_answers_every_log_is_compared(frame):
    table = analysis.errors(analysis.prepared(frame))
    best = analysis.beside_best(table)
    assert len(best) == 16 and "MAGIC" not in set(best["best"])
    cell = {"estimator": "GradientDICE", "problem": "pendulum", "rows": 1_000, "overlap": 0.0}
    values = column(rows_where(frame, **cell), "value").to_numpy(dtype=float)
    [found] = records(rows_where(table, **cell))
    assert len(values) == 8 and found["rmse"] == pytest.approx(np.sqrt(np.mean((values - 1.0) ** 2)))
    assert column(analysis.picks(analysis.prepared(frame)), "factor").min() >= 1


def test_the_page_and_its_figures(frame, page, tmp_path):
    store = ResultStore(tmp_path / "results", "shootout", {})
    drawn = figures.draw_all(store, frame)
    assert set(drawn) == {"size", "overlap", "factors"} and all(path.stat().st_size > 10_000 for path in drawn.values())
    text = page("shootout", frame, run.Scale(seeds=8), figures=drawn)
    assert "### Boyan's Chain, γ = 1" in text and "(7 of 8)" in text and "ModelFail is different" in text
    assert "| MAGIC |" in text and "Taxi with" not in text, "no row of the guide without its log"
    assert "3 benchmarks, 5 estimators" in text and "of 8 cells" in " ".join(text.split()), (
        "two discounts, sizes and overlaps of Boyan"
    )


def test_the_guide_has_a_row_for_thin_tables(frame, page):
    thin = frame[frame["problem"] == "boyan"].assign(problem="taxi")
    text = page("shootout", pd.concat([frame, thin]), run.Scale(seeds=8), figures=["size", "overlap", "factors"])
    taxi = thin[(thin["rows"] == 1_000) & (thin["overlap"] == 0) & (thin["discount"] == 1)]
    gem = taxi[taxi["estimator"] == "GEM"]
    rmse = np.sqrt(np.mean((gem["value"] - 1.0) ** 2))
    line = next(line for line in text.splitlines() if "Taxi with 1,000 rows" in line)
    assert f"GEM {number(rmse)} |" in line and "γ = 0.95: GradientDICE" in line


def test_who_is_best_is_judged_log_by_log(frame):
    data = analysis.prepared(frame)
    cell = {"problem": "boyan", "discount": 0.95, "rows": 1_000, "overlap": 0.0}
    assert analysis.significance(data, cell, "GradientDICE") == 0.0
    assert analysis.significance(data, cell, "WPDIS") == pytest.approx(-_paired(data, cell, "WPDIS"))
    factor = analysis.median_factor(analysis.errors(data), "WPDIS")
    assert factor > 1 and np.isnan(analysis.median_factor(analysis.errors(data), "MAGIC"))


def _paired(data, cell, other):
    """The t statistic of the squared errors of another estimator above GradientDICE's."""
    rows = data[np.logical_and.reduce([data[name] == value for name, value in cell.items()])]
    gap = (
        rows[rows["estimator"] == other]["squared"].to_numpy()
        - rows[rows["estimator"] == "GradientDICE"]["squared"].to_numpy()
    )
    return gap.mean() / (gap.std(ddof=1) / np.sqrt(len(gap)))
