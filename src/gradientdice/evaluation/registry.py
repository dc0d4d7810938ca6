"""Every estimator by the name that the command line and comparisons give it."""

from __future__ import annotations

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

# The saddle estimators of the paper, which stochastic solvers can learn too.
ESTIMATORS: dict[str, type[GradientDICE | GenDICE | DualDICE]] = {
    "gradient-dice": GradientDICE,
    "gen-dice": GenDICE,
    "dual-dice": DualDICE,
}

# The others, in the order in which `compare` shows them: what needs single transitions only, then what needs the
# behaviour's probabilities.
RELATED: dict[str, type[Estimator]] = {
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
