"""The doubly robust combination of a ratio and a Q:

    ρ̂ = (1−γ) E_μ0[V] + E[τ (r + γV' − Q)],     at γ = 1:  E[τ (r + V' − Q)] / E[τ],

each row with the τ and Q of a fit that did not see it. Its error is the product of τ's error and Q's.

References:
    Kallus and Uehara, Double Reinforcement Learning for Efficient Off-Policy Evaluation in Markov Decision Processes,
    JMLR 2020.
"""

from __future__ import annotations

import numpy as np

from gradientdice.inference.influence import Influence
from gradientdice.inference.scores import HeldOut


def combine(discount: float, weights: np.ndarray, scores: HeldOut, scale: float) -> tuple[float, Influence]:
    """The estimate from held-out scores, and each observation's share in its error.

    Args:
        discount: γ.
        weights: (n,) of the rows.
        scores: τ and r + γV' − Q where they were not fitted.
        scale: the rows' share in the data that τ is a ratio to: the rest is the absorbing state's own, whose residual
            is 0.
    """
    if discount == 1:
        mass = weights * scores.ratio
        score = scores.residual + scores.norm
        value = float(mass @ score / mass.sum())
        shares = mass * (score - value) / mass.sum()
        initial = None
        if scores.initial_value is not None and scores.ended is not None:
            # V' after an end is the mean of V over the sampled initial states, whose own error counts too.
            share = float(mass[scores.ended].sum() / mass.sum())
            initial = share * (scores.initial_value - scores.initial_value.mean()) / len(scores.initial_value)
        return value, Influence(shares, initial, scores.ratio, scores.residual)
    score = scale * scores.ratio * scores.residual
    mean = float(np.average(score, weights=weights))
    assert scores.initial_value is not None
    initial = (1 - discount) * scores.initial_value
    rows = weights * (score - mean) / weights.sum()
    # The ratio to the rows alone.
    shares = Influence(rows, (initial - initial.mean()) / len(initial), scale * scores.ratio, scores.residual)
    return float(initial.mean()) + mean, shares
