"""Figure 4's grid: 3 learners × 6 discounts × 3 learning rates × 2 penalties × 30 runs, as a few compiled programs.

DualDICE has no penalty, so that its runs with the two penalties are the same; both are run, so that the grid is the
paper's.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from gradientdice.dice.stochastic.primal_dual import Case, PrimalDual, case_numbers
from gradientdice.dice.stochastic.setup import Setup, network_setup
from gradientdice.dice.stochastic.training import Group, Outcome, collect, run_groups
from gradientdice.estimators.saddle.dual_dice import DualDICE
from gradientdice.estimators.saddle.gen_dice import GenDICE
from gradientdice.estimators.saddle.gradient_dice import GradientDICE
from gradientdice.functions.mlp import MLP
from gradientdice.log.transitions import Transitions
from gradientdice.problem.inputs import network_inputs
from gradientdice_studies.reacher.environment import TARGET_NOISE, Actor, noisy
from gradientdice_studies.reacher.protocols import DISCOUNTS, with_restarts

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
    def estimator(self) -> GradientDICE | GenDICE | DualDICE:
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

    Below discount 1 the runs of the two protocols are the same, and only the truth differs; at discount 1 "corrected"
    has its own runs.
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
    setup = network_setup(functions, inputs, discount)
    groups = [_group(learner, discounts, setup) for learner in LEARNERS]
    return _joined(name, collect(run_groups(groups, range(seeds))))


def _group(learner: str, discounts: tuple[float, ...], setup: Setup) -> Group:
    chosen = [setting for setting in settings(discounts) if setting.learner == learner]
    cases: list[Case] = [(setting.estimator, PrimalDual.paper(setting.learning_rate)) for setting in chosen]
    plan = cases[0][1].plan(cases[0][0], setup.functions)
    return Group(plan, setup.source, setup.recorder, case_numbers(cases))


def _joined(name: str, outcomes: list[Outcome]) -> dict[str, np.ndarray]:
    return {
        f"{name}_curve": np.concatenate([outcome.curve for outcome in outcomes]).astype(np.float32),
        f"{name}_diverged_at": np.concatenate([outcome.diverged_at for outcome in outcomes]),
    }
