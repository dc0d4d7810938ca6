"""What `evaluate` and `compare` take: checked, and filled in where it may be left out."""

from __future__ import annotations

import numpy as np

from gradientdice.data.transitions import Transitions
from gradientdice.errors import InputError
from gradientdice.estimators import DualDICE, Estimator, GenDICE, GradientDICE
from gradientdice.functions.kernel import FittedKernel, Nystrom, RandomFourier
from gradientdice.functions.linear import LinearFeatures
from gradientdice.functions.mlp import MLP
from gradientdice.functions.tabular import Tabular
from gradientdice.inference.direct import DirectEstimator
from gradientdice.policies import DiscretePolicy, LoggedPolicy, Policy, SamplingPolicy, TabularPolicy

# A table of which the log shows more pairs than this is not tried by itself: states that many may be amounts.
LARGEST_TABLE = 4096
FUNCTIONS = (Tabular, LinearFeatures, FittedKernel, RandomFourier, Nystrom, MLP)


def table_for(data: Transitions, policy: Policy) -> Tabular | None:
    """A table where the log's states and actions are few whole numbers, else None."""
    if isinstance(policy, TabularPolicy):
        return Tabular(*policy.probabilities.shape)
    whole = data.states.ndim == 1 and data.states.dtype.kind in "iu"
    if isinstance(policy, (DiscretePolicy, LoggedPolicy)) and policy.num_actions and whole:
        # What follows an end is not used and may be anything.
        used = ~data.ended
        highest = max(int(data.states.max()), int(data.next_states[used].max(initial=0)))
        if data.start_states is not None:
            highest = max(highest, int(data.start_states.max()))
        table = Tabular(highest + 1, policy.num_actions)
        if table.num_features <= LARGEST_TABLE or len(np.unique(data.states)) * policy.num_actions <= LARGEST_TABLE:
            return table
    return None


def chosen_estimator(
    estimator: Estimator | DirectEstimator | None, discount: float | None
) -> Estimator | DirectEstimator:
    """The estimator given, else the default at this discount."""
    if estimator is None:
        if discount is None:
            raise InputError("Give a discount (1 for the average reward), or an estimator that has one.")
        return GradientDICE(discount)
    if discount is not None and discount != estimator.discount:
        raise InputError(f"discount={discount:g} contradicts the estimator's {estimator.discount:g}: give one of them.")
    return estimator


def require_estimator(estimator: object) -> None:
    """An error unless this is an estimator with its discount."""
    if isinstance(estimator, type):
        raise InputError(f"estimator must be made with its discount: {estimator.__name__}(0.9), not the class itself.")
    if not isinstance(estimator, (GradientDICE, GenDICE, DualDICE, DirectEstimator)):
        raise InputError(
            "estimator must be one of gradientdice.ESTIMATORS or RELATED with its discount, such as "
            f"GradientDICE(0.9), not {estimator!r}."
        )


def require_functions(functions: object) -> None:
    """An error unless this is a function class, or None."""
    if functions is not None and not isinstance(functions, FUNCTIONS):
        raise InputError(
            "functions must be Tabular(…), LinearFeatures(…), RandomFourier(…), Nystrom(…) or MLP(…), not "
            f"{functions!r}."
        )


def require_types(data: Transitions, policy: Policy) -> None:
    """An error if these are not a log and a policy."""
    if not isinstance(data, Transitions):
        raise InputError(f"data must be Transitions, not {type(data).__name__}: see gradientdice.Transitions and load.")
    if not isinstance(policy, (TabularPolicy, DiscretePolicy, SamplingPolicy, LoggedPolicy)):
        raise InputError(
            "policy must be a TabularPolicy, DiscretePolicy, SamplingPolicy or LoggedPolicy, "
            f"not {type(policy).__name__}: wrap it in one."
        )


def require_no_own_functions(estimator: Estimator | DirectEstimator) -> None:
    """An error if an estimator brings functions along: in a renumbered table they would see other states."""
    for name, value in vars(estimator).items():
        if isinstance(value, FUNCTIONS):
            raise InputError(
                f"A table of this size is solved over the states that the log shows, renumbered, and {name}= is for "
                "the states as they are: leave it out, or renumber the states yourself and give a smaller table."
            )
