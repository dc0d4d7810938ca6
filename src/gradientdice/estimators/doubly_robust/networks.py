"""A cross-fitted doubly robust answer from networks: the ratio by an estimator's own learner, Q by fitted Q evaluation.

Each fold is scored by networks that did not see it: the means of an ensemble, whose members are one program.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from gradientdice.base.errors import require_count
from gradientdice.dice.saddle import SaddleObjective
from gradientdice.dice.stochastic.fitted_q import FittedQ, member_seeds
from gradientdice.dice.stochastic.plan import Cosine
from gradientdice.dice.stochastic.primal_dual import PrimalDual, as_solution, train_groups
from gradientdice.dice.stochastic.setup import network_setup
from gradientdice.dice.stochastic.sources import NetworkSource
from gradientdice.estimators.answer import Answer
from gradientdice.estimators.doubly_robust.combine import combine
from gradientdice.estimators.doubly_robust.network_scores import (
    average_reward,
    each_output,
    scored_q,
    simulated_discount,
    value_bounds,
    without_level,
)
from gradientdice.functions.mlp import MLP
from gradientdice.problem.problem import Problem
from gradientdice.statistics.evidence import Evidence
from gradientdice.statistics.influence import HeldOut

FOLDS, MEMBERS = 2, 3
# Points of the learning curve, each of which evaluates the ratio on the whole log.
RECORDS = 20


def default_solver(steps: int = 10_000) -> PrimalDual:
    """How ratios are learned where no solver is given: plain steps along half a cosine, averaged iterates.

    Plain steps beat Adam on small MDPs with known values, at every discount and for GradientDICE and GenDICE alike:
    momentum makes two players circle around their saddle point.
    """
    record_every = max(1, steps // RECORDS)
    return PrimalDual(steps, Cosine(0.05, steps), batch_size=256, record_every=record_every, average=0.99)


def neural_doubly_robust(
    problem: Problem,
    estimator: SaddleObjective,
    *,
    solver: PrimalDual | None = None,
    fitted_q: FittedQ | None = None,
    members: int = MEMBERS,
) -> Answer:
    """Trains on all folds but one, scores the one left out, and combines."""
    require_count("members", members)
    solver, fitted_q = solver or default_solver(), fitted_q or FittedQ(bounded=True)
    data, seed, functions = problem.data, problem.seed, problem.functions
    assert isinstance(functions, MLP)
    gamma = estimator.discount
    trained = simulated_discount(gamma)
    inputs = problem.inputs.without_absorbing() if gamma == 1 else problem.inputs
    folds = problem.folds(FOLDS)
    seeds = member_seeds(seed, members)
    n = len(data)
    ratio = np.empty(n)
    setups = [
        network_setup(functions, inputs.only(folds.rows != fold, folds.initial != fold), gamma)
        for fold in range(folds.count)
    ]
    groups = [solver.group(estimator, setup) for setup in setups]
    sources = [setup.source for setup in setups if isinstance(setup.source, NetworkSource)]
    rewards, level = inputs.rewards, 0.0
    if gamma == 1:
        rewards, level = without_level(data)
        sources = [replace(source, rewards=jnp.asarray(rewards)) for source in sources]
    # Both kinds of networks at the same time: while one program is compiled, the other cores train or compile too.
    with ThreadPoolExecutor(1) as background:
        fitting = background.submit(fitted_q.fit, functions, sources, trained, seeds, progress=problem.progress)
        outcomes = train_groups(groups, seeds.tolist(), progress=problem.progress)
        fits = fitting.result()
    mean_ratios = [float(outcome.curve[0, :, -1, 1].mean()) for outcome in outcomes]
    for fold, (outcome, mean_ratio) in enumerate(zip(outcomes, mean_ratios, strict=True)):
        rows = np.flatnonzero(folds.rows == fold)
        players = jax.tree.map(lambda a: a[0], outcome.players.ratio)
        outputs = each_output(players, inputs.current[rows], members)
        ratio[rows] = np.mean([np.asarray(estimator.ratio(output)) for output in outputs], axis=0) / mean_ratio
    found = scored_q(fits, inputs, folds, members, value_bounds(data, trained, level))
    # At discount 1 the residual of a Q of a smaller discount is about the average reward.
    average = average_reward(found, inputs) if gamma == 1 else 0.0
    norm = np.full(n, level + average)
    residual = rewards[:n] + gamma * found.next_value - found.q - average
    initial = None if gamma == 1 and not inputs.restarts else found.initial_value
    solution = as_solution(groups[-1], outcomes[-1])
    scores = HeldOut(ratio, residual, norm, initial, data.terminated if inputs.restarts else None)
    # The ratio is one to the data with the absorbing state's own row in it, whose residual is 0.
    value, shares = combine(gamma, data, scores, problem.row_share(gamma))
    return Answer(
        value=value,
        influence=shares,
        ratio=shares.ratio,
        solution=solution,
        evidence=Evidence(mean_ratio=float(np.mean(mean_ratios))),
        functions=repr(functions),
        method=f"doubly robust {estimator!r} with fitted Q, {members} networks of each kind, cross-fitted",
        status=solution.status,
        notes=(
            "the misfit of networks cannot be bounded; the interval covers sampling noise",
            *fitted_q.warning(trained),
        ),
    )
