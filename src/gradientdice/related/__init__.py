"""The other estimators that the paper names. A new one is one new file here, one import and one entry in RELATED."""

from gradientdice.inference.direct import DirectEstimator
from gradientdice.related.bch import BCH
from gradientdice.related.behavior_cloning import BehaviorCloning
from gradientdice.related.cop_td import COPTD
from gradientdice.related.discounted_cop_td import DiscountedCOPTD
from gradientdice.related.gem import GEM
from gradientdice.related.lstdq import LSTDQ

RELATED: dict[str, type[DirectEstimator]] = {
    "lstdq": LSTDQ,
    "cop-td": COPTD,
    "discounted-cop-td": DiscountedCOPTD,
    "bch": BCH,
    "gem": GEM,
}

__all__ = ["BCH", "COPTD", "GEM", "LSTDQ", "RELATED", "BehaviorCloning", "DiscountedCOPTD"]
