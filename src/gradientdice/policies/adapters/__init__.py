"""`policy`: whatever decides, in whatever framework, as a policy of this library. One file per framework."""

from gradientdice.policies.adapters.policy import policy

__all__ = ["policy"]
