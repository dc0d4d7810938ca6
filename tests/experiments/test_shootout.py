"""The shootout: its benchmarks' logs and truths, one cell as it is run, and the page from a made-up table."""

import numpy as np
import pandas as pd
import pytest

from gradientdice.experiments.shootout import analysis, figures, page, run
from gradientdice.experiments.shootout.control import CONTROL
from gradientdice.experiments.shootout.problems import TABULAR
from gradientdice.experiments.store import ResultStore

SMALL = [name for name in TABULAR if name not in ("taxi", "page-rank")]


@pytest.mark.parametrize("name", [*SMALL, "cart-pole", "pendulum"])
def test_a_log_of_the_target_itself_has_the_true_value(name):
    """With overlap 1 the behaviour is the target, so that the mean of discounted episodes is the truth."""
    problem = run.PROBLEMS[name]()
    discount = problem.discounts[0]
    rows = 20_000
    data = problem.log(rows, 1.0, np.random.default_rng(0))
    assert len(data) == rows
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
    assert TABULAR["taxi"]().functions.num_features == 12_000
    pages = TABULAR["page-rank"]()
    assert pages.functions.num_features == 200_000 and pages.sizes[1] == 1_000_000
    assert set(CONTROL) == {"cart-pole", "pendulum", "reacher"}


def test_a_cell_has_a_row_for_every_estimator():
    rows = run.answers(run.Cell("boyan", 0.95, 1_000, 0.4, 0))
    names = [row["estimator"] for row in rows]
    assert len(names) == len(set(names)) == len(run.RELATED) + 4
    assert sum(row["chosen"] for row in rows) == 1
    for row in rows:
        assert (row["value"] is None) == row["note"].startswith("not applicable")
    by_name = {row["estimator"]: row for row in rows}
    assert by_name["LSTDQ"]["value"] == pytest.approx(by_name["GradientDICE"]["value"], rel=1e-8)
    assert by_name["BlackBox"]["value"] is None


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
    assert len(best) == 16 and not (best["best"] == "MAGIC").any()
    own = frame[(frame["estimator"] == "GradientDICE") & (frame["problem"] == "pendulum") & (frame["rows"] == 1_000)]
    own = own[own["overlap"] == 0.0]
    found = table[(table["problem"] == "pendulum") & (table["rows"] == 1_000) & (table["overlap"] == 0.0)]
    rmse = found[found["estimator"] == "GradientDICE"]["rmse"].iloc[0]
    assert rmse == pytest.approx(np.sqrt(np.mean((own["value"] - 1.0) ** 2)))
    assert (analysis.picks(analysis.prepared(frame))["factor"] >= 1).all()


def test_the_page_and_its_figures(frame, tmp_path):
    store = ResultStore(tmp_path / "results", "shootout", {})
    drawn = figures.draw_all(store, frame)
    assert set(drawn) == {"size", "overlap", "factors"} and all(path.stat().st_size > 10_000 for path in drawn.values())
    page.write_page(tmp_path / "page.md", frame, run.Scale(seeds=8), {name: path.name for name, path in drawn.items()})
    text = (tmp_path / "page.md").read_text()
    assert "Boyan's Chain, γ = 1" in text and "(7 of 8)" in text and "ModelFail" in text
    assert "| MAGIC |" in text and "nan" not in text
