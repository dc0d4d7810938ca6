"""Kernel features, and the block form that discrete actions take."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.functions import FittedKernel
from gradientdice.functions.kernel_features import cosine_of_turns
from gradientdice.functions.rows import BlockRows, DenseRows, cross_product
from gradientdice.problem.design import whole_design
from gradientdice.problem.stream import LogDesign


def log(rng, n=400, actions=3):
    states, following = rng.normal([1.0, -5.0], [2.0, 0.1], size=(2, n, 2))
    terminated = rng.random(n) < 0.2
    return gd.Transitions(
        states, rng.integers(0, actions, n), rng.normal(size=n), following, states[:20], terminated=terminated
    )


def blocks(kernel: FittedKernel, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """The features of the states, of which each action has a block."""
    rows = kernel.at(states, actions)
    assert isinstance(rows, BlockRows)
    return rows.base


def test_random_fourier_features_approach_the_kernel(rng):
    data = log(rng)
    policy = gd.DiscretePolicy(lambda s: np.full((len(s), 3), 1 / 3), 3)
    kernel = gd.RandomFourier(40_000, bandwidth=0.8).fitted(data, policy)
    base = blocks(kernel, data.states[:6], data.actions[:6])
    assert (base[:, 0] == 1).all()
    z = (data.states[:6] - data.states.mean(axis=0)) / data.states.std(axis=0)
    exact = np.exp(-np.sum((z[:, None] - z) ** 2, axis=2) / (2 * 0.8**2 * 2))
    np.testing.assert_allclose(base[:, 1:] @ base[:, 1:].T, exact, atol=0.03)


def test_nystrom_features_are_the_kernel_at_landmarks(rng):
    data = log(rng)
    policy = gd.DiscretePolicy(lambda s: np.full((len(s), 3), 1 / 3), 3)
    base = blocks(gd.Nystrom(50, bandwidth=0.8).fitted(data, policy), data.states, data.actions)
    assert base.shape == (400, 51) and base[:, 1:].max() == pytest.approx(1.0) and base.min() >= 0


def test_blocks_are_a_kronecker_product(rng):
    base, weights, other = rng.normal(size=(30, 4)), rng.dirichlet(np.ones(3), size=30), rng.uniform(0.5, 2, 30)
    ended = rng.random(30) < 0.3
    taken = BlockRows(base, np.eye(3)[rng.integers(0, 3, 30)], np.zeros(30))
    expected = BlockRows(rng.normal(size=(30, 4)), np.where(ended[:, None], 0, weights), ended.astype(float))
    params = rng.normal(size=(13, 2))
    for rows in (taken, expected):
        np.testing.assert_allclose(rows.predict(params), rows.matrix(13) @ params, atol=1e-12)
    for left, right in ((taken, taken), (expected, taken)):
        dense = cross_product(DenseRows(left.matrix(13)), DenseRows(right.matrix(13)), other, 13)
        np.testing.assert_allclose(cross_product(left, right, other, 13), dense, atol=1e-12)


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_moments_and_answers_are_those_of_the_same_features_given_plainly(rng, discount):
    """Blocks with an absorbing state against LinearFeatures that spell the same features out."""
    data = log(rng, n=3000)
    policy = gd.DiscretePolicy(lambda s: np.tile([0.2, 0.3, 0.5], (len(s), 1)), 3)
    fitted = gd.RandomFourier(6, 1.0).fitted(data, policy)
    plain = gd.LinearFeatures(lambda s, a: fitted.at(s, a.astype(int)).matrix(21), intercept=False)
    blocks, spelled = (
        gd.evaluate(data, policy, discount=discount, functions=f) for f in (gd.RandomFourier(6, 1.0), plain)
    )
    assert blocks.value == pytest.approx(spelled.value, rel=1e-8)
    assert blocks.standard_error == pytest.approx(spelled.standard_error, rel=1e-6)


def test_continuous_actions_are_inputs_and_are_drawn(rng):
    data = gd.Transitions(
        rng.normal(size=(200, 2)),
        rng.normal(size=(200, 1)),
        np.zeros(200),
        rng.normal(size=(200, 2)),
        rng.normal(size=(9, 2)),
    )
    policy = gd.SamplingPolicy(lambda s, rng: s[:, :1] + rng.normal(size=(len(s), 1)))
    first, second = LogDesign(data, policy, gd.RandomFourier(10)), LogDesign(data, policy, gd.RandomFourier(10))
    rows, same = next(first.chunks())[1], next(second.chunks())[1]
    assert isinstance(rows.current, DenseRows) and rows.width == 11
    assert isinstance(rows.following, DenseRows) and isinstance(same.following, DenseRows)
    np.testing.assert_array_equal(rows.following.values, same.following.values)


def test_stochastic_learners_take_kernel_features_too(rng):
    data = log(rng)
    policy = gd.DiscretePolicy(lambda s: np.full((len(s), 3), 1 / 3), 3)
    design = whole_design(data, policy, gd.RandomFourier(5), rng)
    assert isinstance(design.current, DenseRows) and design.current.values.shape == (401, 19)
    table = gd.sweep(
        data, policy, gd.GradientDICE(0.9), gd.RandomFourier(5), gd.PrimalDual(50, 0.01), seeds=2, progress=False
    )
    assert np.isfinite(table["value"]).all()


@pytest.mark.parametrize("make", [gd.RandomFourier, gd.Nystrom])
def test_bad_options_are_refused(make):
    for bad in ({"num_features": 0}, {"bandwidth": 0.0}, {"bandwidth": float("nan")}):
        with pytest.raises(gd.InputError):
            make(**bad)


def test_the_cosine_is_numpys(rng):
    turns = rng.normal(size=(300, 70)) * 40
    expected = 2 * np.cos(2 * np.pi * (turns - np.rint(turns)))
    cosine_of_turns(turns, 2.0)
    np.testing.assert_allclose(turns, expected, atol=1e-14)


def test_a_pair_of_bandwidths_mixes_kernels(rng):
    """The features approach the mean of the kernels whose bandwidths are log-uniform between the two."""
    data = log(rng)
    policy = gd.DiscretePolicy(lambda s: np.full((len(s), 3), 1 / 3), 3)
    base = blocks(gd.RandomFourier(40_000, (0.2, 2.0)).fitted(data, policy), data.states[:6], data.actions[:6])
    z = (data.states[:6] - data.states.mean(axis=0)) / data.states.std(axis=0)
    square = np.sum((z[:, None] - z) ** 2, axis=2)[..., None]
    widths = np.exp(np.linspace(np.log(0.2), np.log(2.0), 2001))
    exact = np.exp(-square / (2 * widths**2 * 2)).mean(axis=2)
    np.testing.assert_allclose(base[:, 1:] @ base[:, 1:].T, exact, atol=0.03)


def test_the_rank_tolerance_of_random_features_reaches_the_solver(rng):
    data = log(rng)
    policy = gd.DiscretePolicy(lambda s: np.full((len(s), 3), 1 / 3), 3)
    ranks = [
        gd.Problem(data, policy, gd.RandomFourier(40, (0.2, 2.0), rank_tolerance=tolerance)).moments.rank_tolerance
        for tolerance in (1e-7, 1e-2)
    ]
    assert ranks == [1e-7, 1e-2]


@pytest.mark.parametrize("bandwidth", [0.0, (0.5, 0.2), (0.0, 1.0), (0.1, 0.2, 0.3)])
def test_bandwidths_are_checked(bandwidth):
    with pytest.raises(gd.InputError, match="bandwidth"):
        gd.RandomFourier(10, bandwidth)
