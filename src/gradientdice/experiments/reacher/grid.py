"""Figure 4's grid: 3 learners × 6 discounts × 3 learning rates × 2 penalties × 30 runs, as a few compiled programs.

DualDICE has no penalty, so that its two are the same runs; they are run all the same, for the grid to be the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from gradientdice.data.transitions import Transitions
from gradientdice.estimators import DualDICE, Estimator, GenDICE, GradientDICE
from gradientdice.experiments.reacher.environment import TARGET_NOISE, Actor, noisy
from gradientdice.experiments.reacher.protocols import DISCOUNTS, with_restarts
from gradientdice.functions.inputs import network_inputs
from gradientdice.functions.mlp import MLP
from gradientdice.solvers.grid import hyper_parameters
from gradientdice.solvers.neural.grid import NeuralGroup, NeuralOutcome, run_neural
from gradientdice.solvers.neural.training import NeuralData
from gradientdice.solvers.primal_dual import PrimalDual

LEARNERS = ("GradientDICE", "GenDICE", "DualDICE")
LEARNING_RATES = (0.01, 0.005, 0.001)
PENALTIES = (0.1, 1.0)
SEEDS = 30


@dataclass(frozen=True)
class Setting:
    """One combination of the grid."""

    learner: str
    discount: float
    learning_rate: float
    penalty: float

    @property
    def estimator(self) -> Estimator:
        """With the paper's hyper-parameters."""
        if self.learner == "DualDICE":
            return DualDICE(self.discount)
        kind = GradientDICE if self.learner == "GradientDICE" else GenDICE
        return kind(self.discount, norm_penalty=self.penalty)


def settings(discounts: tuple[float, ...] = DISCOUNTS) -> list[Setting]:
    """The grid in its order."""
    return [Setting(*one) for one in product(LEARNERS, discounts, LEARNING_RATES, PENALTIES)]


def run_grid(data: Transitions, seeds: int = SEEDS) -> dict[str, np.ndarray]:
    """All runs: curves (setting, seed, record, 2) of ρ̂ and E[τ], under the paper's protocol and the corrected one.

    Below discount 1 the two protocols train alike and differ in the truth alone; at discount 1 "corrected" has runs of
    its own.
    """
    return run_paper(data, seeds) | run_corrected(data, seeds)


def run_paper(data: Transitions, seeds: int = SEEDS) -> dict[str, np.ndarray]:
    """The paper's 3,240 runs."""
    return _run("paper", data, DISCOUNTS, 0.5, seeds)


def run_corrected(data: Transitions, seeds: int = SEEDS) -> dict[str, np.ndarray]:
    """The runs at discount 1 on the chain that restarts."""
    return _run("corrected", with_restarts(data), (1.0,), 1.0, seeds)


def _run(
    name: str, data: Transitions, discounts: tuple[float, ...], discount: float, seeds: int
) -> dict[str, np.ndarray]:
    policy, functions = noisy(Actor.load(), TARGET_NOISE), MLP.paper()
    inputs = network_inputs(data, policy, functions.draws, np.random.default_rng(0))
    on_device = NeuralData.create(inputs, discount)
    groups = [_group(learner, discounts, functions, on_device) for learner in LEARNERS]
    return _joined(name, run_neural(groups, range(seeds)))


def _group(learner: str, discounts: tuple[float, ...], functions: MLP, data: NeuralData) -> NeuralGroup:
    chosen = [setting for setting in settings(discounts) if setting.learner == learner]
    plans = [PrimalDual.paper(s.learning_rate).neural_plan(s.estimator, functions, with_ridge=False) for s in chosen]
    hyper = hyper_parameters([setting.estimator for setting in chosen], [plan.schedule for plan in plans])
    return NeuralGroup(plans[0], data, hyper)


def _joined(name: str, outcomes: list[NeuralOutcome]) -> dict[str, np.ndarray]:
    return {
        f"{name}_curve": np.concatenate([outcome.curve for outcome in outcomes]).astype(np.float32),
        f"{name}_diverged_at": np.concatenate([outcome.diverged_at for outcome in outcomes]),
    }
