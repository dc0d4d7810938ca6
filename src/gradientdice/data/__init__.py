"""Logged transitions, their checks, and where they come from: files, data frames, other libraries."""

from gradientdice.data.datasets import load
from gradientdice.data.transitions import Transitions

__all__ = ["Transitions", "load"]
