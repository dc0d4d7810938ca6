"""Scores of rows that a fit did not see, and influence values: how far each row and each start moves a value.

For ρ̂ = E[τr] with linear τ, any λ, ξ and γ in [0, 1], and Δ = x − γx̄',

    IF = (xᵀw)r + (xᵀq)(Δᵀκ) − (Δᵀp)(xᵀw) − (xᵀp)(xᵀκ) − λη(xᵀq) − λ(qᵀv)(xᵀw) − mean,

and a sampled initial distribution adds (1−γ)(x̄0 − b)ᵀp; at γ = 1, where an ended episode restarts, it adds
(x̄0 − b)ᵀ(p E[1{ended} xᵀw] − κ E[1{ended} xᵀq]). With right features IF = τ(r + γV' − Q), the efficient one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from gradientdice.dice.solution import LinearFit
from gradientdice.problem.design import Design
from gradientdice.problem.stream import LogDesign


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


@dataclass(frozen=True, eq=False)
class Influence:
    """Each observation's share in the estimate's error; shares of one kind add up to 0.

    Attributes:
        rows: (n,), a share for each transition: weight · IF / total weight.
        initial: (n0,), a share for each initial state; None if the estimate does not depend on them.
        ratio: (n,), τ at each transition.
        residual: (n,), r + γV' − Q at each transition, with the Q that goes with the ratio.
    """

    rows: Float[np.ndarray, " n"]
    initial: Float[np.ndarray, " n0"] | None
    ratio: Float[np.ndarray, " n"]
    residual: Float[np.ndarray, " n"]


class RowInfluence(NamedTuple):
    """What a fit says of some rows, before anything is centred.

    Attributes:
        ratio: τ.
        adjoint: xᵀq.
        raw: IF plus its mean.
        residual: r + γV' − Q, less the average reward at discount 1.
    """

    ratio: Float[np.ndarray, " n"]
    adjoint: Float[np.ndarray, " n"]
    raw: Float[np.ndarray, " n"]
    residual: Float[np.ndarray, " n"]


def row_influence(fit: LinearFit, design: Design) -> RowInfluence:
    """The fit over some feature rows."""
    gamma, adjoint = fit.discount, fit.adjoint
    restart = design.absorbing and gamma == 1
    params = np.column_stack([fit.solution.ratio_params, adjoint.ratio, adjoint.critic, adjoint.flow])
    if restart:
        params = np.vstack([params, np.zeros(4)])  # the absorbing state is not part of the problem
    tau, q, p, kappa = design.current.predict(params).T
    following = np.array(design.following.predict(params[:, 2:]))
    if restart:
        assert fit.moments.initial is not None
        following[design.ended] = fit.moments.initial @ params[:-1, 2:]
    delta_p, delta_kappa = p - gamma * following[:, 0], kappa - gamma * following[:, 1]
    value = tau * design.rewards + q * delta_kappa - delta_p * tau - p * kappa
    raw = value - adjoint.norm_force * q - adjoint.norm * tau
    return RowInfluence(tau, q, raw, design.rewards - delta_p - adjoint.norm)


def influence(fit: LinearFit, log: LogDesign) -> Influence:
    """The influence values of a fit over the log it was fitted to."""
    gamma = fit.discount
    restart = log.absorbing and gamma == 1
    n = len(log.data)
    raw, ratio, residual, weights = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    ended_ratio = ended_adjoint = 0.0
    for rows, design in log.chunks():
        found = row_influence(fit, design)
        if restart:
            share = design.weights[design.ended] / fit.moments.weight
            ended_ratio += float(share @ found.ratio[design.ended])
            ended_adjoint += float(share @ found.adjoint[design.ended])
        raw[rows], residual[rows] = found.raw, found.residual
        ratio[rows], weights[rows] = found.ratio, design.weights
    shares = weights * (raw - np.average(raw, weights=weights)) / fit.moments.weight
    initial = None
    if log.initial is not None and (gamma < 1 or restart):
        direction = start_direction(fit, ended_ratio, ended_adjoint)
        padded = np.append(direction, 0.0) if restart else direction
        values = np.asarray(log.initial.predict(padded[:, None]))[:, 0]
        initial = centred_shares(values, log.initial_weights)
    return Influence(shares, initial, ratio, residual)


def start_direction(fit: LinearFit, ended_ratio: float, ended_adjoint: float) -> Float[np.ndarray, " K"]:
    """What an initial row is multiplied with for its part in the error.

    Args:
        fit: the fit.
        ended_ratio: at discount 1, E[1{ended} xᵀw].
        ended_adjoint: the same with q.
    """
    if fit.discount < 1:
        return (1 - fit.discount) * fit.adjoint.critic
    return fit.adjoint.critic * ended_ratio - fit.adjoint.flow * ended_adjoint


def centred_shares(values: Float[np.ndarray, " m"], weights: Float[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
    """Each observation's share in the error of a weighted mean: w_i (x_i − x̄) / Σw."""
    return weights * (values - np.average(values, weights=weights)) / weights.sum()
