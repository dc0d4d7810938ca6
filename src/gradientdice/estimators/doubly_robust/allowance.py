"""How far the misfit of searched functions may move a doubly robust answer.

With the Q and the τ̂ of fits that did not see fold f the answer is off by

    Σ_f (n_f/n) E[(τ − τ̂_f) e_f],   e_f = r + γV' − Q of fold f's fit.

If τ − τ̂ lies in the space of the loss's own kernel, each mean is at most its size there times the root of the loss
‖E[e_f ψ]‖², and the sum is at most the size times the root of the loss's mean over folds. In a direction that nothing
is known of, the answer is off by that product times a standard normal number, which is where the confidence enters.
The size is proportional to the target's mass on the rows: where episodes end early and the discount is near 1, most of
it lies behind the end, where the residual is 0.
"""

from __future__ import annotations

import math

from scipy.stats import norm

# The size allowed for τ − τ̂ beside the target's mass. On 15 logs each of CartPole, MountainCar, pendulum, a linear
# system and a walk that ends (2,000 to 3,000 rows, discounts 0.9 to 0.999) 1 covers in 98% of the logs and 1.5 in all;
# the difference is CartPole at 0.99, with 80% and all.
LACKING = 1.5


def misfit_allowance(loss: float, noise: float, mass: float, confidence: float) -> float:
    """How much an interval is widened on both sides.

    Args:
        loss: the kernel Bellman loss, the mean over folds. It may be negative.
        noise: its standard deviation if the residuals were pure noise.
        mass: the target's mass on the rows, as the ratio has it.
        confidence: of the interval.
    """
    # A loss below its own noise could as well be that large.
    larger = max(loss, noise)
    if larger <= 0:
        return 0.0
    # A ratio that goes with a significant loss may miss most of the mass: on CartPole at 0.99 it had 0.4 of 0.995.
    doubt = max(1.0, loss / noise) if noise > 0 else math.inf
    believed = min(1.0, mass * doubt) if mass > 0 else 1.0
    return float(norm.ppf(0.5 + confidence / 2)) * LACKING * believed * math.sqrt(larger)
