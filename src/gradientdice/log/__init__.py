"""Logged transitions, their checks, and where they come from: files, data frames, other libraries."""

from gradientdice.log.formats import load
from gradientdice.log.transitions import Transitions

__all__ = ["Transitions", "load"]
