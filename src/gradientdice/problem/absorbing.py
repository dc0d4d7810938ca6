"""The absorbing state that follows termination: the weight of its own row, and the share of the log's rows beside it.

A terminated transition leads to an absorbing state, which has one row of its own, a self-loop that pays nothing. Any
positive weight of that row gives the same estimate wherever the flow equations can be solved. It is a fixed share of
all weight, so that copies of rows, and weights in their place, change nothing; large enough for well-conditioned
systems and for learners on minibatches, which must see the row.
"""

from __future__ import annotations

from gradientdice.log.transitions import Transitions

ABSORBING_SHARE = 0.1


def loop_weight(row_weight: float) -> float:
    """The weight of the absorbing state's own row beside rows of this total weight."""
    return row_weight * ABSORBING_SHARE / (1 - ABSORBING_SHARE)


def row_share(data: Transitions, discount: float) -> float:
    """The log's share of all weight, the self-loop included: a ratio to both, times this, is one to the rows alone.

    At discount 1 ended episodes restart and there is no absorbing state.
    """
    return 1.0 if discount == 1 or not data.ended.any() else 1 - ABSORBING_SHARE
