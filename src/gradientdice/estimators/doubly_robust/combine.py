"""The doubly robust combination of a ratio and a Q:

    ρ̂ = (1−γ) E_μ0[V] + E[τ (r + γV' − Q)],     at γ = 1:  E[τ (r + V' − Q)] / E[τ],

each row with the τ and Q of a fit that did not see it. Its error is the product of τ's error and Q's.

References:
    Kallus and Uehara, Double Reinforcement Learning for Efficient Off-Policy Evaluation in Markov Decision Processes,
    JMLR 2020.
"""

from __future__ import annotations

import numpy as np

from gradientdice.log.transitions import Transitions
from gradientdice.statistics.influence import HeldOut, Influence, centred_shares


def combine(discount: float, data: Transitions, scores: HeldOut, scale: float) -> tuple[float, Influence]:
    """The estimate from held-out scores, and each observation's share in its error.

    Args:
        discount: γ.
        data: the log, for the weights of its rows and of its initial states.
        scores: τ and r + γV' − Q where they were not fitted.
        scale: the rows' share in the data that τ is a ratio to: the rest is the absorbing state's own, whose residual
            is 0.
    """
    weights, starts = data.row_weights, data.start_weights
    if discount == 1:
        mass = weights * scores.ratio
        score = scores.residual + scores.norm
        value = float(mass @ score / mass.sum())
        shares = mass * (score - value) / mass.sum()
        initial = None
        if scores.initial_value is not None and scores.ended is not None:
            # V' after an end is the mean of V over the sampled initial states, whose own error counts too.
            assert starts is not None
            initial = float(mass[scores.ended].sum() / mass.sum()) * centred_shares(scores.initial_value, starts)
        return value, Influence(shares, initial, scores.ratio, scores.residual)
    score = scale * scores.ratio * scores.residual
    mean = float(np.average(score, weights=weights))
    assert scores.initial_value is not None and starts is not None
    initial = (1 - discount) * scores.initial_value
    # The ratio to the rows alone.
    shares = Influence(
        centred_shares(score, weights), centred_shares(initial, starts), scale * scores.ratio, scores.residual
    )
    return float(np.average(initial, weights=starts)) + mean, shares
