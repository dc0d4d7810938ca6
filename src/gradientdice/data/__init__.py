"""Logged transitions, their checks, and the files they live in."""

from gradientdice.data.files import load
from gradientdice.data.transitions import Transitions

__all__ = ["Transitions", "load"]
