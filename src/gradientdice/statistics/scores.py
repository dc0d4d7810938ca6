"""What fits say about rows that they did not see."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float


@dataclass(frozen=True, eq=False)
class HeldOut:
    """τ and Bellman residuals of each row by a fit that did not see it.

    The matching Q is x·p plus the constant λvᵀq / (1−γ), since p solves Aᵀp = c − λv(vᵀq). At discount 1 the number
    λvᵀq is the value, and Q the differential one.

    Attributes:
        ratio: (n,) τ.
        residual: (n,) r + γV' − Q, less the fit's value at discount 1.
        norm: (n,) λvᵀq of the row's fit.
        initial_value: (n0,) V at the initial states; None if the log has none or they play no part.
        ended: (n,) rows after which an episode restarts from an initial state; None if there are none.
    """

    ratio: Float[np.ndarray, " n"]
    residual: Float[np.ndarray, " n"]
    norm: Float[np.ndarray, " n"]
    initial_value: Float[np.ndarray, " n0"] | None
    ended: Bool[np.ndarray, " n"] | None = None


@dataclass(frozen=True, eq=False)
class HeldOutQ:
    """Q and V for one discount, each row from what did not see its fold.

    Attributes:
        q: Q(s, a) at the logged pairs.
        next_value: V(s') = E_π Q(s', ·) of the same Q; after an end 0 or, at discount 1, the mean of V over initial
            states.
        initial_value: V at the initial states; None if the log has none.
    """

    q: Float[np.ndarray, " n"]
    next_value: Float[np.ndarray, " n"]
    initial_value: Float[np.ndarray, " n0"] | None
