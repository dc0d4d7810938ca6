"""The adjoint of a closed form is the Q function."""

import numpy as np
import pytest

import gradientdice as gd


@pytest.mark.parametrize("discount", [0.5, 0.9, 1.0])
@pytest.mark.parametrize("lam", [0.3, 1.0])
def test_the_adjoint_is_the_q_function(problem, discount, lam):
    """x·p + λvᵀq/(1−γ) = Q with exact moments of a table; at discount 1, up to the constant that Q there has free."""
    mdp, target, data_dist = problem
    fit = gd.ClosedForm().fit_moments(
        gd.GradientDICE(discount, lam), gd.Moments.exact(mdp, target, np.eye(10), data_dist)
    )
    q = mdp.q_values(target, discount).ravel()
    if discount < 1:
        np.testing.assert_allclose(fit.adjoint.critic + fit.adjoint.norm / (1 - discount), q, atol=1e-9)
    else:
        shifted = fit.adjoint.critic - q
        np.testing.assert_allclose(shifted, shifted.mean(), atol=1e-9)
        assert fit.adjoint.norm == pytest.approx(mdp.value(target, 1.0), abs=1e-10)
