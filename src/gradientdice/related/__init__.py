"""The other estimators that the paper names. A new one is one new file here, one import and one entry in RELATED."""

from gradientdice.inference.direct import DirectEstimator
from gradientdice.related.bch import BCH
from gradientdice.related.behavior_cloning import BehaviorCloning
from gradientdice.related.cop_td import COPTD
from gradientdice.related.discounted_cop_td import DiscountedCOPTD
from gradientdice.related.doubly_robust import DR, WDR
from gradientdice.related.drl import DRL
from gradientdice.related.gem import GEM
from gradientdice.related.importance import IS, PDIS, WIS, WPDIS
from gradientdice.related.lstdq import LSTDQ
from gradientdice.related.magic import MAGIC

RELATED: dict[str, type[DirectEstimator]] = {
    "lstdq": LSTDQ,
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
    "drl": DRL,
}

__all__ = [
    "BCH",
    "COPTD",
    "GEM",
    "DiscountedCOPTD",
    "DR",
    "DRL",
    "IS",
    "LSTDQ",
    "MAGIC",
    "PDIS",
    "RELATED",
    "WDR",
    "WIS",
    "WPDIS",
    "BehaviorCloning",
]
