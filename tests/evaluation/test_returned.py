"""The answer of an estimator that a user wrote: refused by the name of its field, or as good as the library's."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gradientdice as gd
import shapes
from problems import random_problem

ROWS = 50


@pytest.fixture
def evaluated(monkeypatch):
    """Evaluates an answer whose parts are changed."""
    monkeypatch.setattr(shapes, "CALLS", 0)  # wrong shapes must reach the library's own refusals
    mdp, target, data_dist = random_problem(0)
    data, policy = mdp.sample(ROWS, data_dist, np.random.default_rng(0)), gd.TabularPolicy(target)
    centred = data.rewards - data.rewards.mean()
    influence = gd.Influence(centred / ROWS, None, np.ones(ROWS), centred)
    right = gd.Answer(value=1.0, influence=influence, ratio=np.ones(ROWS), evidence=gd.Evidence(mean_ratio=1.0))

    def evaluate(change=lambda answer: answer):
        class Own:
            discount = 0.5

            def answer(self, problem, solver=None):
                return change(right)

        return gd.evaluate(data, policy, Own())

    return evaluate


def test_a_right_answer(evaluated):
    assert evaluated().status.ok


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("value", float("nan"), "value of the answer must lie in"),
        ("value", "1", "value of the answer must be a number"),
        ("ratio", np.ones(ROWS - 1), r"ratio of the answer must have shape \(50,\)"),
        ("ratio", np.full(ROWS, np.inf), "not finite, first in row 0"),
        ("influence", 3, "influence of .* must be of type Influence"),
        ("evidence", None, "evidence of .* must be of type Evidence"),
        ("solution", "x", "must be of type Solution"),
        ("status", "ok", "must be of type Status"),
        ("method", 3, "must be of type str"),
        ("notes", "one text", "must be a tuple of texts"),
    ],
)
def test_a_wrong_part_of_an_answer(evaluated, field, value: Any, words):
    with pytest.raises(gd.InputError, match=words):
        evaluated(lambda answer: replace(answer, **{field: value}))


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("allowance", -1.0, "evidence.allowance must lie in"),
        ("mean_ratio", "x", "evidence.mean_ratio must be a number"),
        ("bellman", 1, "evidence.bellman must be True or False"),
        ("density", np.ones(3), r"evidence.density must have shape \(50,\)"),
    ],
)
def test_wrong_evidence(evaluated, field, value: Any, words):
    with pytest.raises(gd.InputError, match=words):
        evaluated(lambda answer: replace(answer, evidence=replace(answer.evidence, **{field: value})))


def test_influence_has_a_share_for_every_row_and_start(evaluated):
    for field in ("rows", "initial", "residual"):
        with pytest.raises(gd.InputError, match=f"influence.{field} must have shape"):
            evaluated(lambda answer, field=field: replace(
                answer, influence=replace(answer.influence, **{field: np.ones(3)})))  # fmt: skip


def test_what_is_no_answer(evaluated):
    for other in (None, 3.0, {"value": 1.0}):
        with pytest.raises(gd.InputError, match="must be of type Answer"):
            evaluated(lambda answer, other=other: other)


def test_what_did_not_end_well_may_hold_anything(evaluated):
    estimate = evaluated(
        lambda answer: replace(answer, value=float("nan"), influence=None, ratio=None, status=gd.Status.DIVERGED)
    )
    assert estimate.status is gd.Status.DIVERGED
