"""The result pages of verdicts, continuous states and Reacher, from small or made-up tables."""

import numpy as np
import pandas as pd
import pytest

from gradientdice.experiments import verdicts
from gradientdice.experiments.continuous import page as continuous_page
from gradientdice.experiments.continuous.run import Scale as ContinuousScale
from gradientdice.experiments.reacher import page as reacher_page
from gradientdice.experiments.reacher.grid import settings
from gradientdice.experiments.reacher.protocols import DISCOUNTS, truth
from gradientdice.experiments.reacher.run import Scale as ReacherScale


def test_verdicts_get_worse_with_the_overlap(tmp_path):
    frame = pd.DataFrame([row for overlap in ("good", "bad") for row in verdicts.run_part("random 5×2", overlap, 2)])
    counts = frame.groupby("overlap")["verdict"].value_counts().unstack(fill_value=0)
    assert counts.loc["good"].get("trust", 0) > counts.loc["bad"].get("trust", 0)
    trusted = frame[(frame["verdict"] == "trust") & (frame["features"] == "right")]
    assert trusted["error"].max() < 0.25
    verdicts.write_page(tmp_path / "page.md", frame, verdicts.QUICK)
    text = (tmp_path / "page.md").read_text()
    assert f"| trust | {(frame['verdict'] == 'trust').sum():,} |" in text


def test_the_continuous_page_counts_what_is_inside_and_ranks_the_criteria(tmp_path):
    rows = []
    for log in range(4):
        for number, (value, loss) in enumerate([(1.0, 0.1), (2.0, 0.5), (1.5, 0.05)]):
            rows.append(
                {
                    "problem": "cartpole",
                    "discount": 0.9,
                    "replication": log,
                    "truth": 1.1,
                    "truth_error": 0.01,
                    "behavior": 3.1,
                    "value": value,
                    "standard_error": 0.1 + number,
                    "loss": loss,
                    "flow_residual": -loss,
                    "chosen": number == 0,
                    "low": 0.9 if log else 1.2,
                    "high": 1.3,
                }
            )
    continuous_page.write_page(tmp_path / "page.md", pd.DataFrame(rows), ContinuousScale())
    text = (tmp_path / "page.md").read_text()
    assert "3 of 4" in text and "5%" in text, "an error of 0.1 in a gap of 2"
    assert "| smallest Bellman loss | 4.00 |" in text and "| smallest flow residual | 9.00 |" in text


@pytest.fixture
def grid():
    rng = np.random.default_rng(0)
    found = {}
    for name, discounts in (("paper", DISCOUNTS), ("corrected", (1.0,))):
        every = settings(discounts)
        curve = np.ones((len(every), 3, 101, 2), dtype=np.float32)
        for number, setting in enumerate(every):
            value = truth(name)[setting.discount][0]
            spread = {"GradientDICE": 0.01, "GenDICE": 0.1, "DualDICE": 0.02}[setting.learner]
            curve[number, :, :, 0] = value + spread * (1 + 0.1 * rng.random((3, 101)))
            if setting.learner == "DualDICE" and setting.discount == 1:
                curve[number] = 0.0
        found[f"{name}_curve"], found[f"{name}_diverged_at"] = curve, np.full((len(every), 3), -1)
    return found


def test_the_reacher_page_judges_the_claims(tmp_path, grid):
    rows = [
        {"log": log, "discount": g, "truth": truth("corrected")[g][0], "truth_error": 1e-3, "value": truth("corrected")[g][0] + 1e-3,
         "low": -1.0, "high": 0.0} for g in DISCOUNTS for log in range(2)
    ]  # fmt: skip
    links = {"figure4": "figure4.png", "mean_ratio": "mean_ratio.png"}
    reacher_page.write_page(tmp_path / "page.md", grid, pd.DataFrame(rows), ReacherScale(), links)
    text = (tmp_path / "page.md").read_text()
    assert '"GradientDICE and GenDICE end alike": not confirmed' in text
    assert '"DualDICE fails at γ = 1": confirmed' in text
    assert "2 of 2" in text and "figure4.png" in text
