"""Function classes for the ratio and the critic."""

from gradientdice.functions.linear import LinearFeatures
from gradientdice.functions.tabular import Tabular

__all__ = ["LinearFeatures", "Tabular"]
