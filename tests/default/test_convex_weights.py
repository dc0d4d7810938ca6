"""Convex weights, against a fine search."""

import numpy as np
import pytest

from gradientdice.default.value_candidates import convex_weights


@pytest.mark.parametrize("seed", range(5))
def test_no_other_weights_are_better(seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(3, 3)) * [1.0, 3.0, 0.5]
    form = root.T @ root
    weights = convex_weights(form)
    assert weights.min() >= 0 and weights.sum() == pytest.approx(1)
    others = rng.dirichlet(np.ones(3), size=100_000)
    assert weights @ form @ weights <= np.einsum("ij,jk,ik->i", others, form, others).min() + 1e-7


def test_a_hopeless_candidate_costs_nothing():
    form = np.diag([1.0, 1.0, 1e30])
    np.testing.assert_allclose(convex_weights(form), [0.5, 0.5, 0.0], atol=1e-6)


def test_forms_with_nothing_in_them():
    np.testing.assert_allclose(convex_weights(np.zeros((4, 4))), 0.25)
    assert convex_weights(np.diag([0.0, 1.0]))[0] == pytest.approx(1)
    assert convex_weights(np.diag([-1.0, 1.0]))[0] == pytest.approx(1), "an estimate of a square may be negative"
