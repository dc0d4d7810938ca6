"""How far misfit may move a doubly robust answer, as far as held-out rows show any.

With the τ̂ and the Q of fits that did not see fold f the answer is off by

    Σ_f (n_f/n) E[(τ − τ̂_f) e_f],   e_f = r + γV' − Q on fold f.

Where there are several kinds of Q, simulated ones, that of fitted Q evaluation and the kernel's, the error is judged by
how far apart the answers are that each kind gives with the same τ̂ (`inference/room.py`): they are fitted in different
ways to the same rows, and are wrong in different ways. Where τ̂ is right, or all Qs are, the answers agree. They can be
wrong alike, as where ten episodes of a log have an end and the target's would all have one; but then the networks of
the model, learned from different rows with different starts, say different things.

Where there is one kind, and at discount 1, there are two further bounds. The allowance is the largest times the
confidence's quantile.

1. If τ − τ̂ lies in the space of the loss's own kernel, each mean is at most its size there times the root of the loss
   ‖E[e_f ψ]‖², and the sum is at most the size times the root of the loss's mean over folds. A loss within its noise
   shows no misfit and allows for none. The size is proportional to the target's mass on the rows: where episodes end
   early and the discount is near 1, most of it lies behind the end, where the residual is 0.

   Without networks and with more than a few inputs it is not enough: functions of the same smoothness are larger in
   that space, the more inputs there are. Where the loss is significant, the error is then also bounded by the root of
   E[(τ − τ̂)²] times that of E[ē²], with ē the mean of e at (s, a). If ē is as smooth as the inputs, E[ē²] is the loss
   over that of an input with variance 1; it is never more than E[e²]. What noise may make of the loss is taken off.
2. The same error is what τ̂ makes of Q's error. What τ̂ makes of the way from Q to another candidate for it is known:
   the difference between the two answers. How much of that way Q's error may be, is the root of Q's loss, with its
   noise, against the loss of the way itself: all of it if held-out rows cannot tell the two apart, and little if they
   can.
"""

from __future__ import annotations

import math

# The size allowed for τ − τ̂ beside the target's mass. On logs of 2,000 rows of CartPole, MountainCar, pendulum and
# three other systems (discounts 0.9 to 1, 108 intervals) 1.5 covers in 97% and 1 in 91%; the difference is pendulum.
LACKING = 1.5
# Up to so many inputs that was tried.
FEW_INPUTS = 4
# The size of τ − τ̂ in mean square, where the loss is more than so many times its noise. On 35 logs of 10³ and 10⁴ rows
# of the control tasks that methods are developed on and that have more inputs, 78 of 98 intervals have such a loss.
# Without this bound 45% of them hold the truth; with 1, 1.25 and 1.5 of it 87%, 95% and 99%, at half-widths of 1, 1.2
# and 1.5 gaps in place of 0.3 at 10⁴ rows. Of the other 20 intervals 8 hold it, so that such answers carry a caution.
IN_MEAN_SQUARE, SIGNIFICANT = 1.25, 2.0


# How much of the standard deviation of the policy's value over the networks counts as one of the error. With 0.5, 0.75
# and 1 of it intervals of the logs named in `inference/room.py` cover in 89%, 96% and 96% at discount 1, and in 98%
# below, at widths 6.3, 7.6 and 9.4 times that of running the policy.
SPREAD = 0.75


# How much of the bound from the loss counts beside the two above. With 0, 0.5 and 1 of it the same intervals below
# discount 1 cover in 98% each, and are 6.0, 6.3 and 9.7 times as wide as those of running the policy.
SIMULATED_LACKING = 0.5


def lacking_ratio(loss: float, noise: float, mass: float) -> float:
    """The first bound.

    Args:
        loss: the kernel Bellman loss, the mean over folds. It may be negative.
        noise: its standard deviation if the residuals were pure noise.
        mass: the target's mass on the rows, as the ratio has it.
    """
    if loss <= noise:
        return 0.0
    return LACKING * _believed(loss, noise, mass) * math.sqrt(loss - noise)


def lacking_in_mean_square(loss: float, noise: float, mass: float, input_loss: float, square: float) -> float:
    """The same for many inputs, where the loss is significant.

    Args:
        loss: the kernel Bellman loss, the mean over folds.
        noise: its standard deviation if the residuals were pure noise.
        mass: the target's mass on the rows, as the ratio has it.
        input_loss: the loss of a residual that is an input with variance 1.
        square: the residual's mean square.
    """
    significant = loss - SIGNIFICANT * noise
    if significant <= 0:
        return 0.0
    return IN_MEAN_SQUARE * _believed(loss, noise, mass) * math.sqrt(min(significant / input_loss, square))


def _believed(loss: float, noise: float, mass: float) -> float:
    # A ratio that goes with a significant loss may miss most of the mass: on CartPole at 0.99 it had 0.4 of 0.995.
    doubt = loss / noise if noise > 0 else math.inf
    return min(1.0, mass * doubt) if mass > 0 else 1.0


def unexplained_share(loss: float, noise: float, way: float) -> float:
    """How much of the way from Q to another candidate Q's error may be, at most 1.

    Args:
        loss: the kernel Bellman loss of Q.
        noise: the loss's noise.
        way: the loss of the difference of the two candidates' residuals.
    """
    own = max(loss, 0.0) + noise
    return math.sqrt(own / way) if way > own else 1.0
