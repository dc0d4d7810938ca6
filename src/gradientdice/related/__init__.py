"""The other estimators that the paper names. A new one is one new file here, one import and one entry in RELATED."""

from gradientdice.inference.direct import DirectEstimator
from gradientdice.related.lstdq import LSTDQ
from gradientdice.related.mql import MQL
from gradientdice.related.mwl import MWL

RELATED: dict[str, type[DirectEstimator]] = {
    "lstdq": LSTDQ,
    "mql": MQL,
    "mwl": MWL,
}

__all__ = ["LSTDQ", "MQL", "MWL", "RELATED"]
