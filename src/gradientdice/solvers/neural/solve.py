"""One neural run, or an ensemble of them, as `Solution`s."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import jax
import numpy as np

from gradientdice.estimators import Estimator
from gradientdice.functions.inputs import NetworkInputs
from gradientdice.functions.mlp import MLP
from gradientdice.solvers.grid import hyper_parameters
from gradientdice.solvers.neural.grid import NeuralGroup, NeuralOutcome, record_steps, run_neural
from gradientdice.solvers.neural.network import Layers
from gradientdice.solvers.neural.training import NeuralData, NeuralPlan
from gradientdice.solvers.primal_dual import PrimalDual
from gradientdice.solvers.progress import progress_bar
from gradientdice.solvers.solution import Curve, Solution
from gradientdice.solvers.status import Status


def train_networks(
    estimator: Estimator,
    functions: MLP,
    solver: PrimalDual,
    inputs: NetworkInputs,
    seeds: Sequence[int],
    *,
    checkpoint: Path | None = None,
    progress: bool = False,
) -> tuple[NeuralPlan, NeuralOutcome]:
    """All seeds of one setting."""
    plan = solver.neural_plan(estimator, functions, with_ridge=estimator.ridge > 0)
    data = NeuralData.create(inputs, estimator.discount)
    group = NeuralGroup(plan, data, hyper_parameters([estimator], [plan.schedule]))
    total = len(seeds) * (len(record_steps(plan)) - 1)
    with progress_bar("training", total, "ρ̂") if progress else nullcontext() as advance:

        def watch(blocks: int, values: np.ndarray) -> None:
            if advance is not None:
                advance(blocks, f"{np.median(values):.5g}")

        (outcome,) = run_neural([group], seeds, checkpoint=checkpoint, watch=watch)
    return plan, jax.tree.map(lambda array: array[0], outcome)


def as_solution(plan: NeuralPlan, outcome: NeuralOutcome, run: int) -> Solution:
    """One run; parameters are flattened, layer after layer."""
    players = jax.tree.map(lambda array: array[run], outcome.players)
    diverged_at = int(outcome.diverged_at[run])
    curve = outcome.curve[run]
    return Solution(
        ratio_params=_flat(players.ratio),
        critic_params=_flat(players.critic),
        norm_multiplier=float(players.norm_multiplier),
        status=Status.OK if diverged_at < 0 else Status.DIVERGED,
        stats={
            "steps": plan.steps,
            "first_mean_ratio": float(curve[0, 1]),
            "last_mean_ratio": float(curve[-1, 1]),
            **({"diverged_at": diverged_at} if diverged_at >= 0 else {}),
        },
        curve=Curve(record_steps(plan), curve[:, 0].astype(np.float64), "value"),
    )


def predict(layers: Layers, inputs: np.ndarray) -> np.ndarray:
    """A network's outputs in NumPy, a chunk of rows at a time: (n, d) -> (n,)."""
    outputs = np.empty(len(inputs))
    for start in range(0, len(inputs), 65_536):
        values = inputs[start : start + 65_536]
        for weight, bias in layers[:-1]:
            values = np.maximum(values @ np.asarray(weight) + np.asarray(bias), 0)
        weight, bias = layers[-1]
        outputs[start : start + 65_536] = (values @ np.asarray(weight) + np.asarray(bias))[:, 0]
    return outputs


def _flat(layers: Layers) -> np.ndarray:
    return np.concatenate([np.asarray(leaf, dtype=np.float64).ravel() for leaf in jax.tree.leaves(layers)])
