"""Target policies: what is to be evaluated."""

from gradientdice.policies.discrete import DiscretePolicy
from gradientdice.policies.sampling import SamplingPolicy
from gradientdice.policies.tabular import TabularPolicy

Policy = TabularPolicy | DiscretePolicy | SamplingPolicy

__all__ = ["DiscretePolicy", "Policy", "SamplingPolicy", "TabularPolicy"]
