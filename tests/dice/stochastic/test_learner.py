"""One update: against the printed ones, against finite differences, and with every option written out by hand."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import gradientdice as gd
from dice.stochastic.small import boyan_source
from gradientdice.dice.saddle import Terms
from gradientdice.dice.stochastic.functions import LinearClass, Players
from gradientdice.dice.stochastic.learner import first_iterate, replay, update
from gradientdice.dice.stochastic.primal_dual import train
from gradientdice.dice.stochastic.setup import network_setup
from gradientdice.dice.stochastic.sources import Batch
from gradientdice.functions.rows import DenseRows
from gradientdice.problem.inputs import network_inputs
from problems import known
from reference import learners


@pytest.mark.parametrize(("estimator", "by_hand"), learners.CASES)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_whole_gradient_is_that_of_the_printed_update(estimator, by_hand, sign, rng):
    """Plain steps are tested with the estimators; these go through an optimiser that returns them as they are."""
    size, alpha = 6, 0.13
    x, x_next, x0, w, kappa = rng.normal(size=(5, size)) * sign
    eta = rng.normal()
    plan = gd.PrimalDual(1, alpha, optimizer=optax.sgd(1.0)).plan(estimator, LinearClass(size)).ridged(True)
    batch = Batch(*(DenseRows(jnp.asarray(row[None])) for row in (x, x_next, x0)))
    players = Players(jnp.asarray(w[:, None]), jnp.asarray(kappa[:, None]), jnp.asarray([eta]))
    numbers = {"ridge": jnp.asarray([estimator.ridge])}
    new = update(plan, estimator, numbers, batch, first_iterate(plan, players), alpha).players
    penalty = getattr(estimator, "norm_penalty", 0.0)
    expected = by_hand(x, x_next, x0, w, kappa, eta, estimator.discount, penalty, estimator.ridge, alpha)
    np.testing.assert_allclose(new.ratio[:, 0], expected[0], rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(new.critic[:, 0], expected[1], rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(new.norm_multiplier[0], expected[2], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(
    "estimator",
    [gd.GradientDICE(0.7, norm_penalty=0.8, ridge=0.1), gd.GenDICE(0.7, norm_penalty=0.8), gd.DualDICE(0.7, ridge=0.1)],
    ids=lambda e: type(e).__name__,
)
def test_one_step_of_networks_is_the_gradient_of_the_objective(estimator):
    """On a log of one row the minibatch is known; the step must be that of central differences in NumPy."""
    rng = np.random.default_rng(0)
    data = gd.Transitions(
        rng.normal(size=(1, 2)),
        rng.normal(size=(1, 1)),
        [1.0],
        rng.normal(size=(1, 2)),
        initial_states=rng.normal(size=(1, 2)),
    )
    policy = gd.SamplingPolicy(lambda s, r: np.full((len(s), 1), 0.3), draws=1)
    inputs = network_inputs(data, policy, 1, rng)
    setup = network_setup(gd.MLP((5,), ratio_start=0.7), inputs, estimator.discount)
    rate = 1e-3
    start, end = (
        train(gd.PrimalDual(1, step, 4, record_every=1).group(estimator, setup), [3]).players for step in (1e-30, rate)
    )

    def network(layers, x):
        (w1, b1), (w2, b2) = layers
        return (np.maximum(x @ w1[0, 0] + b1[0, 0], 0) @ w2[0, 0] + b2[0, 0])[..., 0]

    def objective(players):
        raw = network(players[0], inputs.current)
        f, f_next, f_initial = (
            network(players[1], x) for x in (inputs.current, inputs.following[:, 0], known(inputs.initial)[:, 0])
        )
        return float(np.mean(estimator.objective(Terms(estimator.ratio(raw), f, f_next, f_initial, 0.0))))

    sign = -1.0 if estimator.ratio_minimises else 1.0
    for player, direction in ((0, sign), (1, -sign)):
        for layer, part, entry in ((0, 0, (0, 0)), (0, 0, (2, 3)), (1, 0, (1, 0)), (1, 1, (0,))):
            place = (0, 0, *entry)
            copies = [
                [[(w.astype(float), b.astype(float)) for w, b in own] for own in (start.ratio, start.critic)]
                for _ in range(2)
            ]
            for moved, step in zip(copies, (1e-5, -1e-5), strict=True):
                moved[player][layer][part][place] += step
            slope = (objective(copies[0]) - objective(copies[1])) / 2e-5
            first = (start.ratio, start.critic)[player][layer][part][place]
            expected = direction * slope - (estimator.ridge * first if player == 0 else 0.0)
            found = ((end.ratio, end.critic)[player][layer][part][place] - first) / rate
            assert found == pytest.approx(expected, rel=2e-2, abs=2e-4)


def by_hand(options, steps=60, rate=0.2, seed=3):
    """GradientDICE(0.7) on Boyan's chain in NumPy: descent directions, clipped, through Adam, averaged, with a copy."""
    source, _, _ = boyan_source(None)
    plan = gd.PrimalDual(steps, rate, 1, 20).plan(gd.GradientDICE(0.7), LinearClass(26))
    params = np.concatenate([np.full(26, 0.9), np.full(26, 0.1), [0.0]])
    copy, mean = params[26:52].copy(), params.copy()
    moment, square = np.zeros(53), np.zeros(53)
    for t, (i, j, k) in enumerate(np.asarray(replay(plan, source, seed)), start=1):
        w, kappa, eta = params[:26], params[26:52], params[52]
        descent = np.zeros(53)
        follow = copy if options.get("target_rate") else kappa
        descent[i] += 0.7 * follow[j] - kappa[i] + eta
        descent[26 + i] += w[i] + kappa[i]
        if not options.get("target_rate"):
            descent[26 + j] -= 0.7 * w[i]
        descent[26 + k] -= 0.3
        descent[52] = -(w[i] - 1 - eta)
        if options.get("clip_norm"):
            descent *= min(1.0, options["clip_norm"] / np.linalg.norm(descent))
        if options.get("optimizer"):
            moment, square = 0.9 * moment + 0.1 * descent, 0.999 * square + 0.001 * descent**2
            descent = moment / (1 - 0.9**t) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
        params = params - rate * descent
        mean = options.get("average", 0.0) * mean + (1 - options.get("average", 0.0)) * params
        copy = (1 - options.get("target_rate", 0.0)) * copy + options.get("target_rate", 0.0) * params[26:52]
    return mean


@pytest.mark.parametrize(
    "options",
    [
        {"optimizer": optax.adam(1.0)},
        {"clip_norm": 0.3},
        {"average": 0.9},
        {"target_rate": 0.1},
        {"optimizer": optax.adam(1.0), "clip_norm": 0.3, "average": 0.9, "target_rate": 0.1},
    ],
    ids=lambda options: "-".join(options),
)
def test_a_table_takes_every_option_of_networks(options):
    source, recorder, _ = boyan_source(None)
    solver = gd.PrimalDual(60, 0.2, 1, 20, gd.ConstantInit(0.9, 0.1), **options)
    solution = solver.solve(gd.GradientDICE(0.7), source, recorder, seed=3)
    found = np.concatenate([solution.ratio_params, solution.critic_params, [solution.norm_multiplier]])
    np.testing.assert_allclose(found, by_hand(options), rtol=2e-3, atol=2e-4)
