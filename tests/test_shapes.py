"""The shapes that annotations give are checked while tests run: a wrong one must raise."""

from typing import Any

import numpy as np
import pytest
from jaxtyping import TypeCheckError

import gradientdice as gd
import shapes
from gradientdice.problem.support import restricted_to_logged
from gradientdice.statistics.influence import Influence

pytestmark = pytest.mark.skipif(not shapes.ACTIVE, reason="CHECK_SHAPES=0: no shapes are checked in this run")


def test_an_argument_of_a_wrong_shape():
    restricted_to_logged(np.full((3, 2), 0.5), np.ones((3, 2)))
    with pytest.raises(TypeCheckError, match="restricted_to_logged"):
        restricted_to_logged(np.full((3, 2), 0.5), np.ones((2, 3)))
    with pytest.raises(TypeCheckError, match="restricted_to_logged"):
        restricted_to_logged(np.full((3, 2), 0.5), np.ones((3, 2), dtype=int))


def test_a_field_of_a_wrong_shape():
    rows: Any = np.zeros(4)
    Influence(rows, None, rows, rows)
    with pytest.raises(TypeCheckError, match=r"Influence.ratio is ndarray float64\(3,\)"):
        Influence(rows, None, np.zeros(3), rows)


def test_lists_that_become_arrays_are_no_mistake():
    assert gd.Transitions([0], [0], [1.0], [0]).rewards.shape == (1,)
    with pytest.raises(gd.InputError, match="rewards has 2 rows but states has 1"):
        gd.Transitions([0], [0], [1.0, 2.0], [0])


def test_other_annotations_are_left_to_the_library_and_to_pyright():
    log: Any = {"states": [0]}
    with pytest.raises(gd.InputError, match="data must be Transitions"):
        gd.evaluate(log, gd.TabularPolicy([[1.0]]), discount=0.9)
