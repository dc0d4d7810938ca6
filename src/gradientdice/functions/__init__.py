"""Function classes for the ratio and the critic."""

from gradientdice.functions.kernel import FittedKernel, Nystrom, RandomFourier
from gradientdice.functions.linear import LinearFeatures
from gradientdice.functions.mlp import MLP
from gradientdice.functions.tabular import LoggedTable, Tabular

# What gives feature rows, and what a user may give: kernel features are first fitted to the log.
FeatureMap = Tabular | LoggedTable | LinearFeatures | FittedKernel
LinearFunctions = FeatureMap | RandomFourier | Nystrom
Functions = LinearFunctions | MLP

__all__ = [
    "MLP",
    "FeatureMap",
    "FittedKernel",
    "Functions",
    "LinearFeatures",
    "LinearFunctions",
    "LoggedTable",
    "Nystrom",
    "RandomFourier",
    "Tabular",
]
