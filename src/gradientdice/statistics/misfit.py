"""Do the features fit? Whether a fit's Bellman residuals r + γV' − Q look like noise to a common kernel.

With right features the residuals have mean 0 given state and action, and the kernel Bellman loss is noise around 0;
features that miss something leave a loss of many standard deviations. As the fit has seen the rows, the figure is a
little below 0 when all is well.
"""

from __future__ import annotations

import numpy as np

from gradientdice.log.transitions import Transitions
from gradientdice.problem.folds import Folds
from gradientdice.problem.stream import LogDesign
from gradientdice.statistics.bellman import KernelBellmanLoss
from gradientdice.statistics.influence import Influence
from gradientdice.statistics.scores import HeldOut

# More rows than this see no more, and take longer.
MOST_ROWS = 10_000


def bellman_misfit(log: LogDesign, shares: Influence, seed: int) -> float:
    """The kernel Bellman loss of the fit's Q, in standard deviations of its noise."""
    data = log.data
    rows = np.arange(len(data))
    if len(rows) > MOST_ROWS:
        rows = np.random.default_rng(seed).choice(rows, size=MOST_ROWS, replace=False)
    weights = None if data.weights is None else data.weights[rows]
    some = Transitions(
        data.states[rows], data.actions[rows], data.rewards[rows], data.next_states[rows], weights=weights
    )
    judge = KernelBellmanLoss(some, log.policy, Folds.create(some, 1, seed))
    loss, noise = judge(HeldOut(shares.ratio[rows], shares.residual[rows], np.zeros(len(rows)), None))
    return loss / noise if noise > 0 else 0.0
