"""`Watch`: evaluations from a fixed log while a policy is trained, with an early stop."""

from gradientdice.evaluation.watching.watch import Watch

__all__ = ["Watch"]
