"""The other estimators that the paper names. A new one is one new file here, one import and one entry in RELATED."""

from gradientdice.inference.direct import DirectEstimator
from gradientdice.related.bch import BCH
from gradientdice.related.behavior_cloning import BehaviorCloning
from gradientdice.related.black_box import BlackBox
from gradientdice.related.cop_td import COPTD
from gradientdice.related.discounted_cop_td import DiscountedCOPTD
from gradientdice.related.doubly_robust import DR, WDR
from gradientdice.related.drl import DRL
from gradientdice.related.fqe import FQE
from gradientdice.related.gem import GEM
from gradientdice.related.importance import IS, PDIS, WIS, WPDIS
from gradientdice.related.lagrangian import ReadOut, RegularizedLagrangian
from gradientdice.related.lstdq import LSTDQ
from gradientdice.related.magic import MAGIC
from gradientdice.related.mql import MQL
from gradientdice.related.mwl import MWL

# In the order in which `compare` shows them: what needs single transitions only, then what needs the behaviour.
RELATED: dict[str, type[DirectEstimator]] = {
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

__all__ = [
    "BCH",
    "COPTD",
    "DR",
    "DRL",
    "FQE",
    "GEM",
    "IS",
    "LSTDQ",
    "MAGIC",
    "MQL",
    "MWL",
    "PDIS",
    "RELATED",
    "WDR",
    "WIS",
    "WPDIS",
    "BehaviorCloning",
    "BlackBox",
    "DiscountedCOPTD",
    "ReadOut",
    "RegularizedLagrangian",
]
