"""The verdicts get worse with the overlap, and the page counts them."""

import pandas as pd
import pytest

from gradientdice_studies.coverage.problems import problems
from gradientdice_studies.store import ResultStore
from gradientdice_studies.verdicts import run as experiment
from gradientdice_studies.verdicts.figures import draw_all
from gradientdice_studies.verdicts.run import QUICK, run_part

FIGURES = ("verdicts",)


@pytest.fixture(scope="module")
def frame():
    return pd.DataFrame([row for overlap in ("good", "bad") for row in run_part("random 5×2", overlap, 2)])


def test_verdicts_get_worse_with_the_overlap(frame):
    counts = frame.groupby("overlap")["verdict"].value_counts().unstack(fill_value=0)
    assert counts.loc["good"].get("trust", 0) > counts.loc["bad"].get("trust", 0)
    trusted = frame[(frame["verdict"] == "trust") & (frame["features"] == "right")]
    assert len(trusted) and trusted["error"].max() < 0.25


def test_a_table_answers_logs_with_missing_pairs(frame):
    assert not ((frame["features"] == "right") & (frame["verdict"] == "refused")).any()


def test_the_page_counts_each_verdict(frame, page):
    text = page("verdicts", frame, QUICK, FIGURES)
    for verdict in ("trust", "caution", "do not trust"):
        assert f"\n| {verdict} | {(frame['verdict'] == verdict).sum():,} |" in text
    assert f"{len(frame)} logs" in text


@pytest.mark.slow
def test_the_figure_has_a_curve_for_each_check(frame, tmp_path):
    figures = draw_all(ResultStore(tmp_path / "out", "verdicts", {}), frame)
    assert set(figures) == set(FIGURES) and figures["verdicts"].stat().st_size > 30_000
    assert {"check: effective sample size", "threshold: effective sample size"} <= set(frame.columns)
    assert set(frame["half"]) == {"develop"}


def test_the_page_says_that_logs_were_refused_only_if_some_were(frame, page):
    answered = frame.assign(verdict="trust", inside=1.0, error=0.1)
    assert "none was refused" in page("verdicts", answered, QUICK, FIGURES)
    some = answered.assign(verdict=frame["features"].map({"right": "trust", "misspecified": "refused"}))
    text = " ".join(page("verdicts", some, QUICK, FIGURES).split())
    assert "50% were refused (0% with the table, 100% with the wrong features)" in text
    assert "none was refused" not in text and "| caution | 0 |" in text


def test_the_logged_share_of_the_target_is_the_overlap():
    problem = problems()["random 8×3"]()
    logged = experiment.logged_with(problem, 0.2)
    least = problem.target.argmin(axis=1)
    others = logged.behavior - 0.2 * problem.target
    assert logged.behavior.sum(axis=1) == pytest.approx(1)
    assert others[range(len(least)), least] == pytest.approx(0.8) and (others >= -1e-12).all()
