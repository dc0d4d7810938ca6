"""`ESTIMATORS`: every estimator by name, and those that a comparison leaves out.

What an estimator is, its class declares (`Declares` of `estimators/answer.py`).
"""

from __future__ import annotations

from typing import Any

from gradientdice.default.automatic import Automatic
from gradientdice.default.model.rollouts import ModelRollouts
from gradientdice.estimators.answer import Estimator
from gradientdice.estimators.doubly_robust.drl import DRL
from gradientdice.estimators.minimax.black_box import BlackBox
from gradientdice.estimators.minimax.lagrangian import RegularizedLagrangian
from gradientdice.estimators.minimax.mql import MQL
from gradientdice.estimators.minimax.mwl import MWL
from gradientdice.estimators.saddle.dual_dice import DualDICE
from gradientdice.estimators.saddle.gen_dice import GenDICE
from gradientdice.estimators.saddle.gradient_dice import GradientDICE
from gradientdice.estimators.state_ratio.bch import BCH
from gradientdice.estimators.state_ratio.cop_td import COPTD
from gradientdice.estimators.state_ratio.discounted_cop_td import DiscountedCOPTD
from gradientdice.estimators.state_ratio.gem import GEM
from gradientdice.estimators.trajectory.doubly_robust import DR, WDR
from gradientdice.estimators.trajectory.importance import IS, PDIS, WIS, WPDIS
from gradientdice.estimators.trajectory.magic import MAGIC
from gradientdice.estimators.value.fqe import FQE
from gradientdice.estimators.value.lstdq import LSTDQ

# A class takes the discount first, which the protocol `Estimator` does not say. The saddle estimators of the paper come
# first, then what needs single transitions only, then what needs the behaviour's probabilities: `compare` shows them in
# this order.
ESTIMATORS: dict[str, type[Any]] = {
    "gradient-dice": GradientDICE,
    "gen-dice": GenDICE,
    "dual-dice": DualDICE,
    "lstdq": LSTDQ,
    "fqe": FQE,
    "mwl": MWL,
    "mql": MQL,
    "regularized-lagrangian": RegularizedLagrangian,
    "black-box": BlackBox,
    "drl": DRL,
    "cop-td": COPTD,
    "discounted-cop-td": DiscountedCOPTD,
    "bch": BCH,
    "gem": GEM,
    "is": IS,
    "pdis": PDIS,
    "wis": WIS,
    "wpdis": WPDIS,
    "dr": DR,
    "wdr": WDR,
    "magic": MAGIC,
}

# `compare` shows the default's answer without being asked, and the learned model is for continuous states alone.
DEFAULT: type[Any] = Automatic
UNLISTED: dict[str, type[Any]] = {"automatic": DEFAULT, "model-rollouts": ModelRollouts}


def compared(discount: float) -> list[Estimator]:
    """Estimators that are compared where none are given: each with its defaults, and DualDICE with its closed form."""
    return [kind(discount) for kind in ESTIMATORS.values()] + [DualDICE(discount, power=2.0)]
