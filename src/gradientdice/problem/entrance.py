"""Is this a log, a policy, a function class? The types that every way to an answer asks for first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gradientdice.data.transitions import Transitions
from gradientdice.errors import InputError, StartsMissing
from gradientdice.functions import MLP, FittedKernel, LinearFeatures, LoggedTable, Nystrom, RandomFourier, Tabular
from gradientdice.policies import DiscretePolicy, LoggedPolicy, Policy, SamplingPolicy, TabularPolicy


@contextmanager
def explained_starts(data: Transitions, policy: Policy) -> Iterator[None]:
    """Says of missing starts what is missing: the initial states, or the policy at those that the log has."""
    try:
        yield
    except StartsMissing as error:
        if not isinstance(policy, LoggedPolicy) or policy.knows_initial or data.start_states is None:
            raise
        raise InputError(
            "The LoggedPolicy is not given at the initial states, which are needed here: give initial_probabilities "
            f"(or initial_actions) with {len(data.start_states)} rows, one per initial state of the log."
        ) from error


def require_types(data: object, policy: object) -> None:
    """An error if these are not a log and a policy."""
    if not isinstance(data, Transitions):
        raise InputError(f"data must be Transitions, not {type(data).__name__}: see gradientdice.Transitions and load.")
    if not isinstance(policy, (TabularPolicy, DiscretePolicy, SamplingPolicy, LoggedPolicy)):
        raise InputError(
            "policy must be a TabularPolicy, DiscretePolicy, SamplingPolicy or LoggedPolicy, "
            f"not {type(policy).__name__}: wrap it in one."
        )


def require_functions(functions: object, name: str = "functions") -> None:
    """An error unless this is a function class, or None."""
    allowed = (Tabular, LoggedTable, LinearFeatures, FittedKernel, RandomFourier, Nystrom, MLP)
    if functions is not None and not isinstance(functions, allowed):
        raise InputError(
            f"{name} must be Tabular(…), LinearFeatures(…), RandomFourier(…), Nystrom(…) or MLP(…), not "
            f"{functions!r:.60}."
        )
