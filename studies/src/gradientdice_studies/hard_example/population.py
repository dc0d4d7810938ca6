"""An estimator's objective over a whole known MDP with tables: what the stochastic learners estimate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gradientdice.dice.saddle import SaddleObjective, Terms
from gradientdice.mdp import TabularMDP


def population_objective(
    estimator: SaddleObjective, mdp: TabularMDP, policy: ArrayLike, data_dist: ArrayLike
) -> Callable[[Any, Any, Any], Any]:
    """J(raw ratio, critic, norm multiplier), exact, for tables (S·A,); works on NumPy and JAX arrays.

    Every objective is linear in f(s',a') and in f(s0,a0), so that their expectations can be used instead.
    """
    probabilities = np.asarray(policy)
    chain = mdp.pair_chain(probabilities)
    initial = (mdp.initial[:, None] * probabilities).ravel()
    data = np.asarray(data_dist).ravel()

    def objective(raw_ratio: Any, critic: Any, norm_multiplier: Any) -> Any:
        terms = Terms(estimator.ratio(raw_ratio), critic, chain @ critic, initial @ critic, norm_multiplier)
        return data @ estimator.objective(terms)

    return objective
