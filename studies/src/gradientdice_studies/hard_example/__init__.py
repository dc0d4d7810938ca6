"""The hard example for GenDICE: one state, two actions, γ = 1, where its gradient vanishes at a wrong point.

The paper shows the point. This experiment adds what kind of point it is (a saddle: the minimiser has negative
curvature there), what happens near it (descent-ascent leaves it, later the closer it starts), and that GradientDICE has
no such point.
"""

from gradientdice_studies.hard_example.descent import (
    UNIFORM,
    WRONG_POINT,
    descend,
    gradient_at,
    ratio_curvature_at,
)

__all__ = ["UNIFORM", "WRONG_POINT", "descend", "gradient_at", "ratio_curvature_at"]
