"""A weight of k on an episode is k copies of it: the same value, ratio and error, for every estimator.

The rewards are continuous, so that copies are known for what they are: one unit, in one fold.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import gradientdice as gd
from problems import EVERY, known, leak, loop, made, rolled, take

AVERAGE_ONLY = {"black-box", "cop-td"}
DISCOUNTED_ONLY = {"dual-dice", "gem", "is", "pdis", "wis", "wpdis", "dr", "wdr", "magic"}
# Their functions are of the state alone.
OF_STATES = {"cop-td", "discounted-cop-td", "bch", "gem"}
PAIRS = gd.LinearFeatures(lambda s, a: np.column_stack([np.sin(2 * s), s * a, a]), intercept=True)
STATES = gd.LinearFeatures(lambda s, a: np.column_stack([np.sin(2 * s), s**2 / 9]), intercept=True)


@cache
def logs(ends: bool) -> tuple[gd.Transitions, gd.Transitions, np.ndarray, np.ndarray]:
    """A log with a weight on each episode, the log with copies in their place, its rows, and the target."""
    problem = leak() if ends else loop()
    data = rolled(problem, 60, 6, seed=3)
    rng = np.random.default_rng(4)
    data = replace(data, rewards=data.rewards + rng.normal(size=len(data)), initial_states=None)
    number, episode = np.unique(known(data.episodes), return_inverse=True)
    # Episodes that start in state 0 count more often: weights that the starts do not feel are then far off.
    started_low = data.states[data.first_rows] == 0
    counts = np.where(started_low, rng.integers(3, 6, len(number)), rng.integers(0, 2, len(number)))
    assert (counts == 0).sum() > 3
    rows, copies = [], []
    for copy in range(counts.max()):
        chosen = np.flatnonzero(counts[episode] > copy)
        rows.append(chosen)
        copies.append(episode[chosen] + copy * len(number))
    rows = np.concatenate(rows)
    copied = take(data, rows, episodes=np.concatenate(copies))
    states = 3 if ends else len(problem[1])
    return replace(data, weights=counts[episode].astype(float)), copied, rows, problem[1][:states]


CASES = [
    (name, discount, ends, kind)
    for name in EVERY
    for discount in (0.9, 1.0)
    for ends in (False, True)
    for kind in ("table", "features", "kernel")
    if not (discount < 1 and name in AVERAGE_ONLY) and not (discount == 1 and name in DISCOUNTED_ONLY)
    # GenDICE has a closed form with a table only; the importance weights of trajectories use no functions.
    if kind == "table" or name not in {"gen-dice", "is", "pdis", "wis", "wpdis"}
]


def functions_for(name: str, kind: str) -> gd.LinearFeatures | gd.RandomFourier | None:
    if kind == "kernel":
        return gd.RandomFourier(4, bandwidth=1.0)
    return None if kind == "table" else STATES if name in OF_STATES else PAIRS


@pytest.mark.parametrize(("name", "discount", "ends", "kind"), CASES)
def test_a_weight_is_so_many_copies(name, discount, ends, kind):
    weighted, copied, rows, target = logs(ends)
    policy, functions = gd.TabularPolicy(target), functions_for(name, kind)
    estimator = made(name, discount)
    if name == "dual-dice" and kind != "table":
        estimator = gd.DualDICE(discount, power=2.0)
    one, other = (gd.evaluate(data, policy, estimator, functions=functions) for data in (weighted, copied))
    assert one.value == pytest.approx(other.value, abs=1e-8)
    np.testing.assert_allclose(known(one.ratio)[rows], known(other.ratio), rtol=1e-6, atol=1e-7)
    if other.standard_error is not None:
        # An episode with a weight is one unit, as it is together with its copies.
        assert one.standard_error == pytest.approx(other.standard_error, rel=1e-6)
    even = estimator.answer(gd.Problem(replace(weighted, weights=None), policy, functions))
    assert abs(even.value - one.value) > 1e-3, "the weights must matter for this to be a test"


@pytest.mark.parametrize("discount", [0.9, 1.0])
@pytest.mark.parametrize("ends", [False, True])
def test_the_sparse_solution_of_a_large_table_is_the_same(discount, ends):
    from gradientdice.estimators.saddle.estimator import sparse_answer

    weighted, copied, rows, target = logs(ends)
    one, other = (sparse_answer(gd.Problem(data, gd.TabularPolicy(target)), discount) for data in (weighted, copied))
    assert one.value == pytest.approx(other.value, abs=1e-10)
    np.testing.assert_allclose(known(one.ratio)[rows], known(other.ratio), atol=1e-8)


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_stochastic_solvers_draw_starts_by_weight(discount):
    """The next start and the start after an end, for linear functions and for networks."""
    import jax

    from gradientdice.dice.stochastic.sources import LogSource, NetworkSource

    weighted, _, _, target = logs(ends=True)
    share = known(weighted.start_weights) / known(weighted.start_weights).sum()
    problem, draws = gd.Problem(weighted, gd.TabularPolicy(target)), 100_000
    drawn = np.asarray(LogSource.create(problem.design, discount).sample(jax.random.key(0), draws))
    for column in (1, 2):
        found = np.bincount(drawn[:, column], minlength=len(share)) / draws
        np.testing.assert_allclose(found, share, atol=5 * np.sqrt(share.max() / draws))
        assert not found[share == 0].any()
    inputs = gd.Problem(weighted, gd.TabularPolicy(target), gd.MLP((4,))).inputs
    source = NetworkSource.create(inputs, discount)
    batch = source.batch(source.numbers(jax.random.key(1), draws))
    wanted = np.einsum("n,nmd->md", share, known(inputs.initial))
    np.testing.assert_allclose(np.asarray(batch.initial).mean(axis=0), wanted, atol=0.02)
    assert np.abs(known(inputs.initial).mean(axis=0) - wanted).max() > 0.1
