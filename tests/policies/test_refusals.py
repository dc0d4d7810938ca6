"""Policies refuse what they cannot be, when they are made and when they answer."""

from typing import Any

import numpy as np
import pytest

import gradientdice as gd

HALVES = np.full((3, 2), 0.5)
STATES = np.zeros((3, 1))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gd.TabularPolicy(HALVES + 0j), "complex"),
        (lambda: gd.TabularPolicy(None), "probabilities is None"),  # pyright: ignore[reportArgumentType]
        (lambda: gd.TabularPolicy([[1.0], [0.5, 0.5]]), "different lengths"),
        (lambda: gd.TabularPolicy(np.ma.MaskedArray(HALVES, HALVES > 0)), "masked"),
        (lambda: gd.TabularPolicy(np.zeros((3, 0))), "shape"),
        (lambda: gd.DiscretePolicy("softmax", 2), "function must be a function"),  # pyright: ignore[reportArgumentType]
        (lambda: gd.DiscretePolicy(lambda states: HALVES, 2.0), "num_actions"),  # pyright: ignore[reportArgumentType]
        (lambda: gd.SamplingPolicy(None), "function must be a function"),  # pyright: ignore[reportArgumentType]
        (lambda: gd.SamplingPolicy(lambda states, rng: states, draws=0), "draws must be at least 1"),
        (lambda: gd.SamplingPolicy(lambda states, rng: states, draws=1.5), "draws"),  # pyright: ignore[reportArgumentType]
        (lambda: gd.LoggedPolicy(), "either"),
        (lambda: gd.LoggedPolicy(HALVES, initial_actions=STATES), "go with initial_probabilities"),
        (lambda: gd.LoggedPolicy(next_actions=STATES, initial_probabilities=HALVES), "go with initial_actions"),
        (lambda: gd.LoggedPolicy(next_actions=np.array([["a"], ["b"]])), "words"),
        (lambda: gd.LoggedPolicy(next_actions=np.array([[1j], [0]])), "complex"),
        (lambda: gd.LoggedPolicy(next_actions=np.array([[None], [0]], dtype=object)), "NoneType"),
        (lambda: gd.LoggedPolicy(next_actions=np.zeros((3, 0))), "shape"),
        (lambda: gd.LoggedPolicy(next_actions=[[1e200]]), "beyond"),
        (lambda: gd.LoggedPolicy(np.zeros((0, 2))), "shape"),
    ],
)
def test_policies_that_cannot_be_are_refused(make, words):
    with pytest.raises(gd.InputError, match=words):
        make()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "None"),
        ("half", "must hold numbers"),
        (HALVES + 0j, "complex"),
        ([[0.5, 0.5], [1.0]], "different lengths"),
        (np.full((3, 2), np.nan), "not finite"),
        (np.full((3, 3), 1 / 3), "it must return"),
        (np.ma.MaskedArray(HALVES, HALVES > 0), "masked"),
    ],
)
def test_answers_that_are_no_probabilities_are_refused(answer: Any, words):
    with pytest.raises(gd.InputError, match=words):
        gd.DiscretePolicy(lambda states: answer, 2).probabilities_at(STATES)


@pytest.mark.parametrize(
    "answer", [None, "left", [["a"]] * 3, [[1j]] * 3, [[1e300]] * 3, [[np.inf]] * 3, [[0.0]] * 2, 1.0]
)
def test_answers_that_are_no_actions_are_refused(answer: Any):
    with pytest.raises(gd.InputError, match="The policy"):
        gd.SamplingPolicy(lambda states, rng: answer).sample(STATES, np.random.default_rng(0))
