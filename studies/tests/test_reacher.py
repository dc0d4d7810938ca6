"""Reacher: the simulation, the two protocols, and the page and figures from a made-up grid."""

import numpy as np
import pandas as pd
import pytest

from gradientdice_studies.reacher.analysis import by_mean_ratio, by_truth
from gradientdice_studies.reacher.environment import Actor, fingerprint, make_log, noisy, returns
from gradientdice_studies.reacher.figures import draw_all
from gradientdice_studies.reacher.grid import settings
from gradientdice_studies.reacher.protocols import DISCOUNTS, truth, truth_episodes, with_restarts
from gradientdice_studies.reacher.run import Results
from gradientdice_studies.store import ResultStore

pytest.importorskip("mujoco")


def test_a_log_is_the_same_for_the_same_seed_and_follows_itself():
    one, again, other = make_log(3, 500), make_log(3, 500), make_log(4, 500)
    assert fingerprint(one) == fingerprint(again) != fingerprint(other)
    assert one.truncated is not None
    inside = ~one.truncated[:-1]
    assert np.array_equal(one.next_states[:-1][inside], one.states[1:][inside])
    assert one.terminated is None and one.truncated.sum() == 10


def test_the_actor_reaches_as_its_training_curve_says():
    found = returns(noisy(Actor.load(), 0.0), (1.0,), 60, 0, 50)[:, 0, 0] * 50
    assert abs(found.mean() - -3.57) < 4 * found.std() / np.sqrt(60)


def test_the_stored_truth_is_that_of_the_target():
    discounts = (0.5, 0.9, 1.0)
    found = returns(noisy(Actor.load(), 0.05), discounts, 100, 7, 60)
    for position, discount in enumerate(discounts):
        for column, protocol in enumerate(("paper", "corrected")):
            sample = found[:, position, column]
            value, error = truth(protocol)[discount]
            assert abs(sample.mean() - value) < 4.5 * np.hypot(sample.std() / 10, error)
    assert truth_episodes() >= 20_000


def test_the_restarting_chain_has_the_step_in_its_state_and_ends_after_fifty():
    data = with_restarts(make_log(0, 200))
    assert data.states.shape == (200, 11) and data.terminated is not None and data.terminated.sum() == 4
    assert np.allclose(data.states[:50, -1], np.arange(50) / 50)
    assert data.terminated[49] and not data.terminated[48]


def test_selection_with_and_without_the_truth():
    rng = np.random.default_rng(0)
    count = len(settings())
    curve = rng.normal(size=(count, 2, 101, 2)).astype(np.float32)
    grid = {"paper_curve": curve, "paper_diverged_at": np.full((count, 2), -1)}
    # One setting is right about the value, another about the mean ratio.
    wanted = [k for k, s in enumerate(settings()) if s.learner == "GenDICE" and s.discount == 0.5]
    curve[wanted[2], :, -1, 0] = truth("paper")[0.5][0]
    curve[wanted[4], :, -1, 1] = 1.0
    assert by_truth(grid, "paper")["GenDICE", 0.5].setting == settings()[wanted[2]]
    assert by_mean_ratio(grid, "paper")["GenDICE", 0.5].setting == settings()[wanted[4]]
    assert set(by_truth(grid, "paper")) == {
        (learner, g) for learner in ("GradientDICE", "GenDICE", "DualDICE") for g in DISCOUNTS
    }


@pytest.fixture
def results():
    """GenDICE's errors are ten times GradientDICE's, DualDICE's ratio is 0 at discount 1, our own intervals cover."""
    rng, found = np.random.default_rng(0), {}
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
    own = [
        {
            "log": log,
            "discount": g,
            "truth": value,
            "truth_error": 1e-3,
            "value": value + 1e-3,
            "low": -1.0,
            "high": 0.0,
        }
        for g in DISCOUNTS
        for value in [truth("corrected")[g][0]]
        for log in range(2)
    ]
    return Results(found, pd.DataFrame(own))


def test_the_page_judges_the_claims(results, page, tmp_path):
    figures = draw_all(ResultStore(tmp_path / "out", "reacher", {}), results)
    assert all(path.stat().st_size > 10_000 for path in figures.values())
    text = page("reacher", results, figures=figures)
    assert '"GradientDICE and GenDICE reach similar errors": not confirmed' in text
    assert '"GradientDICE is more stable": confirmed' in text and "within a factor of 2 in 0 of 6" in " ".join(
        text.split()
    )
    assert '"DualDICE fails at γ = 1": confirmed' in text
    assert text.count("| 2 of 2 | 1 |") == 6, "our own answers"
