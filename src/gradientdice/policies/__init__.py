"""Target policies: what is to be evaluated."""

from gradientdice.policies.discrete import DiscretePolicy
from gradientdice.policies.logged import LoggedPolicy
from gradientdice.policies.sampling import SamplingPolicy
from gradientdice.policies.tabular import TabularPolicy

# What answers for any states, and what may be evaluated: a LoggedPolicy answers for the log's own states only.
StatePolicy = TabularPolicy | DiscretePolicy | SamplingPolicy
Policy = StatePolicy | LoggedPolicy

__all__ = ["DiscretePolicy", "LoggedPolicy", "Policy", "SamplingPolicy", "StatePolicy", "TabularPolicy"]
