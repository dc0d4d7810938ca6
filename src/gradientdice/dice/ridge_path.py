"""The flow equations with a path of ridges: a ratio and its Q for each.

    [A + ξD   v] [w]   [(1−γ)b]          [Aᵀ + ξD   v] [p]   [c]
    [  vᵀ     0] [η] = [   1  ],         [   vᵀ     0] [ρ] = [0].

τ = xᵀw has E[τ] = 1 whatever ξ is, since that is an equation of its own. D is 1 but for the constants and for the
absorbing state's indicator, where it is 0: their shares stay as the flow has them (with the constants in the span η is
0). The second system is the first one's adjoint: Q = xᵀp + ρ/(1−γ), and at γ = 1 ρ is the value and Q the differential
one. Both come from one factorisation.

Features of many bandwidths have no rank to cut: a ridge takes the weight from directions that the log hardly shows,
and with the constants free it is not biased towards E[τ] < 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import get_lapack_funcs

from gradientdice.dice.linear_systems import INVERSE, devices_for, on_first, placed
from gradientdice.problem.moments import Moments

# A system with more counts as singular: no digit of its solution would be right.
LARGEST_CONDITION = 1 / float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """The solution for one ridge.

    Attributes:
        ridge: ξ.
        ratio: w.
        value: p.
        norm: ρ of the adjoint system.
        condition_number: of the system, estimated.
    """

    ridge: float
    ratio: Float[np.ndarray, " K"]
    value: Float[np.ndarray, " K"]
    norm: float
    condition_number: float


def ridge_path(
    moments: Moments, discount: float, ridges: Sequence[float], free: Int[np.ndarray, " c"]
) -> list[RidgeFit]:
    """The solutions for some ridges; a ridge whose system is singular has none.

    Args:
        moments: of a log.
        discount: γ.
        ridges: ξ, each above 0.
        free: the features that the ridge leaves alone: the constants, and the absorbing state's indicator.
    """
    used = moments.for_discount(discount)
    size = used.num_features
    penalty = np.ones(size)
    free = free[free < size]
    # A constant whose action the log never has is an equation 0 = 0, and gets a ridge after all.
    penalty[free[np.diag(used.gram)[free] > 0]] = 0.0
    system = np.zeros((size + 1, size + 1))
    system[:-1, :-1] = used.bellman(discount)
    system[:-1, -1] = system[-1, :-1] = used.mean
    right, adjoint_right = np.append(used.initial_for(discount), 1.0), np.append(used.reward, 0.0)
    devices = devices_for(size, len(ridges) * INVERSE)
    if devices is not None:
        from gradientdice.dice.device_programs import ridge_solution

        matrix, last = placed(devices, system), np.append(penalty, 0.0)
        found = [
            (ridge, *on_first(devices, ridge_solution, matrix, last, np.float64(ridge), right, adjoint_right))
            for ridge in ridges
        ]
        return [
            RidgeFit(ridge, ratio[:-1], value[:-1], float(value[-1]), float(condition))
            for ridge, ratio, value, condition in found
            if condition < LARGEST_CONDITION
        ]
    factor, solve, condition = get_lapack_funcs(("getrf", "getrs", "gecon"), (system,))
    diagonal, fits = np.arange(size), []
    for ridge in ridges:
        matrix = np.array(system, order="F")
        matrix[diagonal, diagonal] += ridge * penalty
        length = float(np.abs(matrix).sum(axis=0).max())
        factors, pivots, failed = factor(matrix, overwrite_a=True)
        rcond = 0.0 if failed else float(condition(factors, length)[0])
        if rcond <= 1 / LARGEST_CONDITION:
            continue
        ratio = solve(factors, pivots, right)[0]
        value = solve(factors, pivots, adjoint_right, trans=1)[0]
        fits.append(RidgeFit(ridge, ratio[:-1], value[:-1], float(value[-1]), 1 / rcond))
    return fits
