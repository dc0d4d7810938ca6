"""The hard example: GenDICE never leaves the wrong point, and leaves it later the closer it starts."""

import pytest

from gradientdice_studies.frames import column, rows_where
from gradientdice_studies.hard_example.run import Scale, run


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return run(tmp_path_factory.mktemp("hard") / "out", Scale(perturbations=(0.0, 1e-6, 1e-2), steps=1000))


def test_gendice_leaves_the_point_later_the_closer_it_starts(results):
    _, frame = results
    steps = []
    for size in (0.0, 1e-6, 1e-2):
        error = column(rows_where(frame, learner="GenDICE", perturbation=size), "error").to_numpy()
        steps.append(int((error >= 1e-3).sum()))
        assert error[0] == pytest.approx(1, abs=0.1)
    assert steps[0] == 1000 > steps[1] > steps[2] > 100
    gradient = rows_where(frame, learner="GradientDICE", step=1000)
    assert column(gradient, "error").max() < 1e-6


def test_the_page_says_who_never_arrives(results, page):
    _, frame = results
    text = page("hard-example", frame, Scale(steps=1000), figures=["hard_example"])
    assert "| largest partial derivative | 0 | 0.5 |" in text
    assert "| GenDICE | 0 | (0.0000, 0.0000) | never |" in text and "τ after 1,000 steps" in text
    assert text.count("never") == 1
