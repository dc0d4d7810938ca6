"""The estimators. A new one is one new file here, one import and one entry in ESTIMATORS."""

from gradientdice.estimators.dual_dice import DualDICE
from gradientdice.estimators.gen_dice import GenDICE
from gradientdice.estimators.gradient_dice import GradientDICE
from gradientdice.estimators.positivity import Exponential, Softplus, Square

Estimator = GradientDICE | GenDICE | DualDICE

ESTIMATORS: dict[str, type[Estimator]] = {
    "gradient-dice": GradientDICE,
    "gen-dice": GenDICE,
    "dual-dice": DualDICE,
}

__all__ = ["ESTIMATORS", "DualDICE", "Estimator", "Exponential", "GenDICE", "GradientDICE", "Softplus", "Square"]
