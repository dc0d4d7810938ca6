"""Influence values: how much each transition and each initial state moves a closed-form value.

For ρ̂ = E[τr] with linear τ, any λ, ξ and γ in [0, 1], and Δ = x − γx̄',

    IF = (xᵀw)r + (xᵀq)(Δᵀκ) − (Δᵀp)(xᵀw) − (xᵀp)(xᵀκ) − λη(xᵀq) − λ(qᵀv)(xᵀw) − mean,

and a sampled initial distribution adds (1−γ)(x̄0 − b)ᵀp; at γ = 1, where an ended episode restarts, it adds
(x̄0 − b)ᵀ(p E[1{ended} xᵀw] − κ E[1{ended} xᵀq]). With right features IF = τ(r + γV' − Q), the efficient one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradientdice.problem.stream import LogDesign
from gradientdice.solvers.solution import LinearFit


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


def influence(fit: LinearFit, log: LogDesign) -> Influence:
    """The influence values of a fit over the log it was fitted to."""
    gamma, adjoint, solution = fit.discount, fit.adjoint, fit.solution
    restart = log.absorbing and gamma == 1
    params = np.column_stack([solution.ratio_params, adjoint.ratio, adjoint.critic, adjoint.flow])
    start = fit.moments.initial
    if restart:
        params = np.vstack([params, np.zeros(4)])  # the absorbing state is not part of the problem
    n = len(log.data)
    raw, ratio, residual, weights = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    ended_ratio = ended_adjoint = 0.0
    for rows, design in log.chunks():
        tau, q, p, kappa = design.current.predict(params).T
        following = np.array(design.following.predict(params[:, 2:]))
        if restart:
            assert start is not None
            following[design.ended] = start @ params[:-1, 2:]
            share = design.weights[design.ended] / fit.moments.weight
            ended_ratio += float(share @ tau[design.ended])
            ended_adjoint += float(share @ q[design.ended])
        delta_p, delta_kappa = p - gamma * following[:, 0], kappa - gamma * following[:, 1]
        value = tau * design.rewards + q * delta_kappa - delta_p * tau - p * kappa
        raw[rows] = value - adjoint.norm_force * q - adjoint.norm * tau
        residual[rows] = design.rewards - delta_p - adjoint.norm
        ratio[rows], weights[rows] = tau, design.weights
    shares = weights * (raw - np.average(raw, weights=weights)) / fit.moments.weight
    direction = (1 - gamma) * adjoint.critic
    if restart:
        direction = adjoint.critic * ended_ratio - adjoint.flow * ended_adjoint
    initial = None
    if log.initial is not None and (gamma < 1 or restart):
        padded = np.append(direction, 0.0) if restart else direction
        values = np.asarray(log.initial.predict(padded[:, None]))[:, 0]
        initial = centred_shares(values, log.initial_weights)
    return Influence(shares, initial, ratio, residual)


def centred_shares(values: Float[np.ndarray, " m"], weights: Float[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
    """Each observation's share in the error of a weighted mean: w_i (x_i − x̄) / Σw."""
    return weights * (values - np.average(values, weights=weights)) / weights.sum()
