"""A cross-fitted doubly robust answer from networks: the ratio by an estimator's own learner, Q by fitted Q evaluation.

Each fold is scored by networks that did not see it: the means of an ensemble, whose members are one program.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

import jax
import numpy as np

from gradientdice.data.transitions import Transitions
from gradientdice.errors import require_count
from gradientdice.estimators import Estimator
from gradientdice.functions.inputs import network_inputs
from gradientdice.functions.mlp import MLP
from gradientdice.inference.doubly_robust import combine
from gradientdice.inference.folds import Folds, HeldOut
from gradientdice.inference.influence import Influence
from gradientdice.policies import Policy
from gradientdice.solvers.neural.fitted_q import FittedQ
from gradientdice.solvers.neural.solve import as_solution, predict, train_networks
from gradientdice.solvers.neural.training import NeuralData
from gradientdice.solvers.primal_dual import PrimalDual
from gradientdice.solvers.progress import progress_bar
from gradientdice.solvers.schedules import Cosine
from gradientdice.solvers.solution import Solution

FOLDS, MEMBERS = 2, 3


def default_solver(steps: int = 10_000) -> PrimalDual:
    """How ratios are learned where nobody says: plain steps along half a cosine, averaged iterates.

    Plain steps beat Adam on small MDPs with known values, at every discount and for GradientDICE and GenDICE alike:
    momentum makes two players circle around their saddle point.
    """
    return PrimalDual(steps, Cosine(0.05, steps), batch_size=256, average=0.99)


@dataclass(frozen=True, eq=False)
class NeuralAnswer:
    """The estimate, each observation's share in its error, and one of the solves behind it."""

    value: float
    shares: Influence
    solution: Solution
    mean_ratio: float
    members: int


def neural_doubly_robust(
    data: Transitions,
    policy: Policy,
    estimator: Estimator,
    functions: MLP,
    *,
    solver: PrimalDual | None = None,
    fitted_q: FittedQ | None = None,
    members: int = MEMBERS,
    seed: int = 0,
    progress: bool = False,
) -> NeuralAnswer:
    """Trains on all folds but one, scores the one left out, and combines."""
    require_count("members", members)
    solver, fitted_q = solver or default_solver(), fitted_q or FittedQ()
    gamma = estimator.discount
    inputs = network_inputs(data, policy, functions.draws, np.random.default_rng(seed))
    if gamma == 1:
        inputs = inputs.without_absorbing()
    folds = Folds.create(data, FOLDS, seed)
    seeds = np.arange(members, dtype=np.uint32) + np.uint32(1000 * seed)
    n = len(data)
    ratio, residual, norm = np.empty(n), np.empty(n), np.zeros(n)
    initial = None if inputs.initial is None or (gamma == 1 and not inputs.restarts) else np.empty(len(inputs.initial))
    solution, mean_ratios = None, []
    with progress_bar("folds", folds.count) if progress else nullcontext(lambda amount: None) as advance:
        for fold in range(folds.count):
            seen = inputs.only(folds.rows != fold, folds.initial != fold)
            plan, outcome = train_networks(estimator, functions, solver, seen, [int(s) for s in seeds])
            layers, rho = fitted_q.fit(functions, NeuralData.create(seen, gamma), gamma, seeds)
            rows = np.flatnonzero(folds.rows == fold)
            tau = _mean(outcome.players.ratio, inputs.current[rows], members, estimator)
            mean_ratio = float(outcome.curve[:, -1, 1].mean())
            q = _mean(layers, inputs.current[rows], members)
            following = expected_output(layers, inputs.following[rows], inputs.following_weights[rows], members)
            following[inputs.ended[rows]] = 0.0
            if initial is not None and inputs.initial is not None and inputs.initial_weights is not None:
                starts = np.flatnonzero(folds.initial == fold)
                initial[starts] = expected_output(
                    layers, inputs.initial[starts], inputs.initial_weights[starts], members
                )
                if inputs.restarts:
                    following[inputs.ended[rows]] = initial[starts].mean()
            ratio[rows] = tau / mean_ratio
            norm[rows] = rho.mean()
            residual[rows] = inputs.rewards[rows] + gamma * following - q - norm[rows]
            mean_ratios.append(mean_ratio)
            solution = as_solution(plan, outcome, 0)
            advance(1)
    assert solution is not None
    weights = data.row_weights
    # The ratio is one to the data with the absorbing state's own row in it, whose residual is 0.
    scale = float(inputs.weights[:n].sum())
    scores = HeldOut(ratio, residual, norm, initial, data.terminated if inputs.restarts else None)
    answer = combine(gamma, weights, scores, scale)
    return NeuralAnswer(answer.value, answer.shares, solution, float(np.mean(mean_ratios)), members)


def _mean(layers, inputs: np.ndarray, members: int, estimator: Estimator | None = None) -> np.ndarray:  # noqa: ANN001 - layers
    """The ensemble's mean output, through the estimator's positive map if it is a ratio."""
    outputs = [predict(jax.tree.map(lambda array, m=m: array[m], layers), inputs) for m in range(members)]
    return np.mean(outputs if estimator is None else [np.asarray(estimator.ratio(o)) for o in outputs], axis=0)


def expected_output(layers, inputs: np.ndarray, weights: np.ndarray, members: int) -> np.ndarray:  # noqa: ANN001 - layers
    """The policy's mean of the ensemble's outputs over actions or draws: (n, m, d) -> (n,)."""
    flat = _mean(layers, inputs.reshape(-1, inputs.shape[-1]), members)
    return np.sum(flat.reshape(weights.shape) * weights, axis=1)
