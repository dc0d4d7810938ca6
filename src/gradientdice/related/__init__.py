"""The other estimators that the paper names. A new one is one new file here, one import and one entry in RELATED."""

from gradientdice.inference.direct import DirectEstimator
from gradientdice.related.behavior_cloning import BehaviorCloning
from gradientdice.related.lstdq import LSTDQ

RELATED: dict[str, type[DirectEstimator]] = {
    "lstdq": LSTDQ,
}

__all__ = ["BehaviorCloning", "LSTDQ", "RELATED"]
