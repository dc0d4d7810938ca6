"""One step of the compiled learner equals the paper's printed updates (as corrected), written out by hand in NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest

import gradientdice as gd
from gradientdice.dice.stochastic.functions import LinearClass, Players
from gradientdice.dice.stochastic.learner import first_iterate, update
from gradientdice.dice.stochastic.plan import Plan
from gradientdice.dice.stochastic.sources import Batch
from gradientdice.functions.rows import DenseRows, SparseRows
from reference import learners


@pytest.mark.parametrize(("estimator", "by_hand"), learners.CASES)
@pytest.mark.parametrize("sign", [1, -1])
def test_one_update_equals_the_printed_one(estimator, by_hand, sign, rng):
    size, alpha = 6, 0.13
    x, x_next, x0, w, kappa = rng.normal(size=(5, size)) * sign
    eta = rng.normal()
    plan = Plan(estimator=estimator, schedule=gd.Constant(alpha), functions=LinearClass(size), steps=1, record_every=1,
                with_ridge=True)  # fmt: skip
    batch = Batch(*(DenseRows(jnp.asarray(row[None])) for row in (x, x_next, x0)))
    players = Players(jnp.asarray(w[:, None]), jnp.asarray(kappa[:, None]), jnp.asarray([eta]))
    numbers = {"ridge": jnp.asarray([estimator.ridge])}
    new = update(plan, estimator, numbers, batch, first_iterate(plan, players), alpha).players
    expected = by_hand(
        x,
        x_next,
        x0,
        w,
        kappa,
        eta,
        estimator.discount,
        getattr(estimator, "norm_penalty", 0.0),
        estimator.ridge,
        alpha,
    )
    np.testing.assert_allclose(new.ratio[:, 0], expected[0], rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(new.critic[:, 0], expected[1], rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(new.norm_multiplier[0], expected[2], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("positivity", [gd.Square(), gd.Exponential(), gd.Softplus()])
def test_gendice_gradients_equal_finite_differences(positivity, rng):
    """In float64 NumPy, since the objective is plain arithmetic: no framework between formula and check."""
    from gradientdice.dice.saddle import Terms

    estimator = gd.GenDICE(0.8, 1.3, positivity=positivity)
    point = rng.normal(size=5)

    def value(p):
        p = np.asarray(p)
        return float(estimator.objective(Terms(estimator.ratio(p[0:1])[0], *p[1:])))

    step = 1e-6
    numeric = np.array([(value(point + step * e) - value(point - step * e)) / (2 * step) for e in np.eye(5)])
    import jax

    exact = jax.grad(lambda p: estimator.objective(Terms(estimator.ratio(p[0]), *p[1:])))(jnp.asarray(point))
    np.testing.assert_allclose(exact, numeric, rtol=2e-4, atol=2e-5)
    assert estimator.ratio(np.array([-3.0]))[0] >= 0


def test_dualdice_conjugate_is_a_conjugate():
    """F*(t) = max_x (xt - |x|^p / p), found on a grid."""
    grid = np.linspace(-30, 30, 600_001)
    for power in (1.5, 2.0, 3.0):
        estimator = gd.DualDICE(0.9, power=power)
        for t in (-2.0, -0.3, 0.0, 1.7):
            best = np.max(grid * t - np.abs(grid) ** power / power)
            assert estimator.conjugate(t) == pytest.approx(best, abs=1e-6)


def test_sparse_rows_do_what_dense_rows_do(rng):
    indices, coefficients = rng.integers(0, 6, size=(3, 2)).astype(np.int32), rng.normal(size=(3, 2))
    sparse = SparseRows(jnp.asarray(indices), jnp.asarray(coefficients))
    dense = DenseRows(jnp.asarray(sparse.matrix(6).toarray()))
    params, amounts = jnp.asarray(rng.normal(size=(6, 4))), jnp.asarray(rng.normal(size=(3, 4)))
    np.testing.assert_allclose(sparse.predict(params), dense.predict(params), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(sparse.add(params, amounts), dense.add(params, amounts), rtol=1e-5, atol=1e-6)
