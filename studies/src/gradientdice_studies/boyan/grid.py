"""The experiment as data: which learners, with which hyper-parameters, on which chain.

The paper's grid is 2 representations × 3 learners × (5 discounts × 6 learning rates + 6 learning rates × 4 ridges at
discount 1) × 30 runs of 3·10⁴ steps: 9,720 runs. There are three studies of our own: the norm penalty, GenDICE's
initial weights, and DualDICE without its absolute value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, Literal

import numpy as np

from gradientdice.dice.stochastic.functions import ConstantInit, Init, LinearClass, UniformInit
from gradientdice.dice.stochastic.primal_dual import PrimalDual, case_numbers, group_cases
from gradientdice.dice.stochastic.setup import RatioError
from gradientdice.dice.stochastic.sources import MDPSource
from gradientdice.dice.stochastic.training import Group
from gradientdice.estimators.saddle.dual_dice import DualDICE
from gradientdice.estimators.saddle.gen_dice import GenDICE
from gradientdice.estimators.saddle.gradient_dice import GradientDICE
from gradientdice.mdp import TabularMDP, boyan_chain, boyan_features, pair_features

Representation = Literal["tabular", "linear"]
Learner = GradientDICE | GenDICE | DualDICE

REPRESENTATIONS: tuple[Representation, ...] = ("tabular", "linear")
LEARNERS: dict[str, type[Learner]] = {"GradientDICE": GradientDICE, "GenDICE": GenDICE, "DualDICE": DualDICE}
DISCOUNTS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
LEARNING_RATES = tuple(4.0**-power for power in range(6, 0, -1))
RIDGES = (0.0, 1e-3, 1e-2, 1e-1)
OTHER_NORM_PENALTIES = (0.1, 10.0)

TARGET = np.tile([0.1, 0.9], (13, 1))
DATA_DIST = np.full((13, 2), 1 / 26)

PAPER, NORM_PENALTY, INITIAL_WEIGHTS, SIGNED = "paper", "norm-penalty", "initial-weights", "dual-without-absolute-value"


class SignedDualDICE(DualDICE):
    """DualDICE as in some public code: τ³/3 instead of |τ|³/3, unbounded above for τ < 0. For comparison only."""

    def conjugate(self, tau: Any) -> Any:
        """τ^q / q, wrong for odd q."""
        return tau**3 / 3


@dataclass(frozen=True)
class Scale:
    """How long the runs are and how many: the paper's, or a quick look."""

    steps: int = 30_000
    record_every: int = 300
    runs: int = 30


FULL = Scale()
QUICK = Scale(steps=3_000, record_every=30, runs=10)


@dataclass(frozen=True)
class Case:
    """One cell of the grid: 30 runs."""

    study: str
    representation: Representation
    learner: str
    estimator: Learner
    learning_rate: float
    init: Init

    def columns(self) -> dict[str, Any]:
        """The case as columns of the table."""
        return {
            "study": self.study,
            "representation": self.representation,
            "learner": self.learner,
            "discount": self.estimator.discount,
            "learning_rate": self.learning_rate,
            "ridge": self.estimator.ridge,
            "norm_penalty": getattr(self.estimator, "norm_penalty", None),
            "init": repr(self.init),
        }


@dataclass(frozen=True)
class Cell:
    """The cases that one compiled program runs, and the group that it is."""

    name: str
    cases: tuple[Case, ...]
    group: Group


def cells(scale: Scale, *, paper_only: bool = False) -> Iterator[Cell]:
    """All programs of the experiment; with paper_only, those of the paper's own grid."""
    for representation in REPRESENTATIONS:
        cases = list(_cases(representation, paper_only))
        pairs = [(case.estimator, _solver(case, scale)) for case in cases]
        features = features_of(representation)
        # The discounted cases see another chain than the average-reward ones, but run the same program.
        width = 26 if features is None else features.shape[1]
        for plan, numbers in group_cases(pairs, LinearClass(width)):
            for average in (False, True):
                source = MDPSource.create(chain(1.0 if average else 0.5), TARGET, DATA_DIST, features)
                chosen = [number for number in numbers if (cases[number].estimator.discount == 1) == average]
                members = tuple(cases[number] for number in chosen)
                truth = np.stack([true_ratio(case.estimator.discount) for case in members], axis=1)
                hyper = case_numbers([pairs[number] for number in chosen])
                criterion = "average" if average else "discounted"
                name = f"{representation}-{criterion}-{members[0].learner}-{members[0].init!r}"
                yield Cell(name, members, Group(plan, source, RatioError.create(features, truth), hyper))


def chain(discount: float) -> TabularMDP:
    """The continuing chain at discount 1, the episodic one below it."""
    return boyan_chain("continuing" if discount == 1 else "episodic")


@cache
def true_ratio(discount: float) -> np.ndarray:
    """τ*, (26,)."""
    return chain(discount).ratio(TARGET, discount, DATA_DIST).ravel()


def features_of(representation: Representation) -> np.ndarray | None:
    """None is a table; linear is Boyan's four features with independent weights for each action."""
    return None if representation == "tabular" else pair_features(boyan_features(), 2)


def _cases(representation: Representation, paper_only: bool) -> Iterator[Case]:
    settings = [(discount, ridge) for discount in DISCOUNTS for ridge in (RIDGES if discount == 1 else (0.0,))]
    for (discount, ridge), rate in product(settings, LEARNING_RATES):

        def case(study: str, learner: str, estimator: Learner, init: Init, rate: float = rate) -> Case:
            return Case(study, representation, learner, estimator, rate, init)

        for name, learner in LEARNERS.items():
            yield case(PAPER, name, learner(discount, ridge=ridge), UniformInit())
        if paper_only:
            continue
        for penalty in OTHER_NORM_PENALTIES:
            yield case(NORM_PENALTY, "GradientDICE", GradientDICE(discount, penalty, ridge), UniformInit())
            yield case(NORM_PENALTY, "GenDICE", GenDICE(discount, penalty, ridge), UniformInit())
        yield case(SIGNED, "DualDICE τ³", SignedDualDICE(discount, ridge=ridge), UniformInit())
        for init in (ConstantInit(1.0, 0.0), UniformInit(fan_in=13 if representation == "tabular" else 4)):
            yield case(INITIAL_WEIGHTS, "GenDICE", GenDICE(discount, ridge=ridge), init)


def _solver(case: Case, scale: Scale) -> PrimalDual:
    return PrimalDual(scale.steps, case.learning_rate, 1, scale.record_every, case.init)
