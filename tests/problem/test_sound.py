"""Moments that no data have are refused at the solver's door."""

import copy
from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from problems import random_problem


@pytest.fixture
def moments():
    mdp, target, data_dist = random_problem(0)
    return gd.Moments.exact(mdp, target, np.eye(10), data_dist)


@pytest.mark.parametrize("name", ["gram", "next_gram", "mean", "reward", "initial"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite(moments, name, bad):
    array = np.array(getattr(moments, name))
    array.flat[3] = bad
    with pytest.raises(gd.InputError, match=f"moments.{name} has a value that is not finite"):
        gd.solve(gd.GradientDICE(0.9), replace(moments, **{name: array}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gram": lambda m: m.gram + np.triu(np.full((10, 10), 1e-3), 1)}, "not a matrix of second moments|symmetric"),
        ({"gram": lambda m: -m.gram}, "second moments"),
        ({"gram": lambda m: m.gram[:5]}, "shape"),
        ({"mean": lambda m: m.gram}, "moments.mean must have shape"),
        ({"reward": lambda m: None}, "moments.reward is None"),
        ({"initial": lambda m: m.initial[:3]}, "moments.initial must have shape"),
        ({"next_gram": lambda m: m.next_gram + 0j}, "complex"),
    ],
)
def test_shapes_and_symmetry(moments, change, words):
    changed = copy.copy(moments)
    for name, make in change.items():
        object.__setattr__(changed, name, make(moments))  # past the tests' own check of shapes
    with pytest.raises(gd.InputError, match=words):
        gd.solve(gd.GradientDICE(0.9), changed)


def test_something_else(moments):
    with pytest.raises(gd.InputError, match="moments must be Moments, not ndarray"):
        gd.solve(gd.GradientDICE(0.9), moments.gram)
