"""Answers as a notebook shows them: cells and pictures that need no style sheet."""

import html
import re

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.evaluation.select import selected
from gradientdice.report.headline import headline

PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def ranking() -> gd.Ranking:
    data = gd.mdp.boyan_chain("continuing").rollout(np.full((13, 2), 0.5), 60, 30, np.random.default_rng(0))
    tables = {"<fast>": [0.1, 0.9], "slow": [0.9, 0.1]}
    return gd.rank(data, {name: gd.TabularPolicy(np.tile(row, (13, 1))) for name, row in tables.items()}, 0.9)


def test_an_estimate_shows_its_headline_and_everything_else_folded(ranking):
    estimate = ranking.estimates["slow"]
    cell, first = estimate._repr_html_(), headline(estimate)
    assert first.value in cell and first.interval in cell and f"{str(estimate.verdict).capitalize()}." in cell
    folded = html.unescape(cell[cell.index("<details>") :])
    assert all(name.strip() in folded for name, _ in estimate.rows())


def test_a_ranking_shows_its_policies_best_first(ranking):
    cell = ranking._repr_html_()
    shown = re.findall(r"&lt;fast&gt;|slow", cell[cell.index("<tbody>") :])[:2]
    assert shown == [html.escape(name) for name in ranking.names]
    assert "<fast>" not in cell  # names are text, not markup


def test_a_selection_shows_what_to_do(ranking):
    selection = selected(ranking)
    decision = f"Deploy {selection.choice}" if selection.choice else "Keep the behaviour"
    assert html.escape(decision) in selection._repr_html_()


@pytest.mark.parametrize("kind", ["estimate", "ranking"])
def test_figures_are_pictures_of_the_size_that_they_say(ranking, kind):
    figure = (ranking if kind == "ranking" else ranking.estimates["slow"]).plot()
    picture, size = figure._repr_png_()
    assert picture.startswith(PNG)
    width, height = (int.from_bytes(picture[at : at + 4], "big") for at in (16, 20))
    assert (width / 2, height / 2) == pytest.approx((size["width"], size["height"]), abs=1)
