"""The other estimators that the paper names. A new one is one new file here, one import and one entry in RELATED."""

from gradientdice.inference.direct import DirectEstimator
from gradientdice.related.black_box import BlackBox
from gradientdice.related.fqe import FQE
from gradientdice.related.lagrangian import ReadOut, RegularizedLagrangian
from gradientdice.related.lstdq import LSTDQ
from gradientdice.related.mql import MQL
from gradientdice.related.mwl import MWL

RELATED: dict[str, type[DirectEstimator]] = {
    "black-box": BlackBox,
    "fqe": FQE,
    "lstdq": LSTDQ,
    "mql": MQL,
    "mwl": MWL,
    "regularized-lagrangian": RegularizedLagrangian,
}

__all__ = ["FQE", "LSTDQ", "MQL", "MWL", "RELATED", "BlackBox", "ReadOut", "RegularizedLagrangian"]
