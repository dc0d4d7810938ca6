"""Neural answers: the truth and the logs that they are measured on, and the page from a made-up table."""

import numpy as np
import pandas as pd
import pytest

from gradientdice_studies.neural.run import Scale, make_log, truth


def test_the_page_counts_what_is_inside(page):
    rows = []
    for log in range(4):
        for problem in ("pendulum", "reacher"):
            value = 1.0 + (log if problem == "pendulum" else 0.0)
            rows.append(
                {
                    "problem": problem,
                    "discount": 0.9,
                    "rows": 20_000,
                    "value": value,
                    "standard_error": 0.25,
                    "low": value - 1,
                    "high": value + 1.5,
                    "logged_mean": 0.5,
                    "truth": 1.0,
                    "truth_error": 0.01,
                }
            )
    text = page("neural", pd.DataFrame(rows))
    assert "| pendulum | 0.9 | 20,000 | 1 ± 0.01 | 0.5 | 1.5 | 1.3 | 0.25 | 2 of 4 |" in text
    assert "| reacher | 0.9 | 20,000 | 1 ± 0.01 | 0.5 | 0 | 0 | 0.25 | 4 of 4 |" in text


def test_logs_differ_by_seed_and_have_the_size_of_the_scale():
    scale = Scale(pendulum_rows=400)
    one, again, other = (make_log("pendulum", seed, scale) for seed in (0, 0, 1))
    assert len(one) == 400 and np.array_equal(one.states, again.states) and not np.array_equal(one.states, other.states)


def test_pendulums_truth_is_found_within_its_error():
    """Two simulations of different lengths agree."""
    short, long = (truth("pendulum", Scale(truth_episodes=episodes)) for episodes in (1_000, 4_000))
    assert long["truth_error"] == pytest.approx(short["truth_error"] / 2, rel=0.2)
    assert abs(short["truth"] - long["truth"]) < 4 * np.hypot(short["truth_error"], long["truth_error"])
