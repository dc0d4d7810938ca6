"""Does the log show what the policy does? Features that the policy reaches but no logged row has say it does not."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from gradientdice.errors import InputError
from gradientdice.functions.design import FeatureMap
from gradientdice.functions.kernel import FittedKernel
from gradientdice.functions.tabular import Tabular


def require_logged(functions: FeatureMap, logged: Float[np.ndarray, " K"], reached: Float[np.ndarray, " K"]) -> None:
    """An error that names the first pair, action or feature that the policy reaches but the log never shows.

    Args:
        functions: the function class.
        logged: each feature's mean square over the log.
        reached: how much of each feature the policy reaches at next and initial states.
    """
    unlogged = np.flatnonzero((logged <= 0) & (reached > 0))
    if not len(unlogged):
        return
    first = int(unlogged[0])
    if isinstance(functions, Tabular):
        state, action = divmod(first, functions.num_actions)
        raise InputError(
            f"The policy takes action {action} in state {state}, which the log never shows ({len(unlogged)} such "
            "pairs): a table has nothing to go by there. Log more data, or use features that generalise."
        )
    if isinstance(functions, FittedKernel) and functions.num_actions is not None:
        action = first // (len(logged) // functions.num_actions)
        raise InputError(
            f"The policy takes action {action}, which the log never shows: nothing is known of what follows it. "
            "Log more data."
        )
    raise InputError(
        f"Feature {first} is 0 in every logged row but not where the policy goes ({len(unlogged)} such features): "
        "nothing is known of what happens there. Log more data, or leave the feature out."
    )
