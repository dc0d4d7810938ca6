"""What a learned model needs of a policy and of a log; this file does not import JAX."""

from __future__ import annotations

from gradientdice.base.errors import InputError
from gradientdice.policies import DiscretePolicy, LoggedPolicy, Policy, SamplingPolicy
from gradientdice.problem.problem import Problem


def can_simulate(policy: Policy) -> bool:
    """Whether the policy answers for any continuous state, as a simulation needs."""
    return isinstance(policy, (DiscretePolicy, SamplingPolicy))


def require_simulated(problem: Problem) -> DiscretePolicy | SamplingPolicy:
    """The policy, if it can be simulated and the states are no table; else an error."""
    policy = problem.policy
    if isinstance(policy, LoggedPolicy):
        raise InputError(
            "A learned model simulates the policy, and a LoggedPolicy is known at the log's states only: give a "
            "DiscretePolicy or SamplingPolicy, or use an estimator that does not simulate, such as GradientDICE."
        )
    if problem.support is not None or not isinstance(policy, (DiscretePolicy, SamplingPolicy)):
        raise InputError(
            "A learned model is for continuous states, and these are a table: use GradientDICE, which solves the log's "
            "own transitions exactly."
        )
    return policy
