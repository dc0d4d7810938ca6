"""A case: a problem, ten candidate policies, and logs of another policy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from gradientdice.log.transitions import Transitions
from gradientdice.policies import DiscretePolicy, SamplingPolicy, TabularPolicy

Half = Literal["develop", "report"]
CandidatePolicy = TabularPolicy | DiscretePolicy | SamplingPolicy
# A candidate that is the very policy that logs: nothing is gained by deploying it.
COPY = "copy"
# What the policy that logs is called among the values.
BEHAVIOR = "behavior"
# Two values are told apart if they differ by so many standard errors.
CLEARLY = 2.0


@dataclass(frozen=True)
class Worth:
    """What a policy is worth.

    Attributes:
        value: (1−γ)-normalised.
        error: the standard error of the value; 0 where it is exact.
    """

    value: float
    error: float = 0.0


def best_of(worth: Mapping[str, Worth]) -> tuple[str, ...]:
    """The best policy; with it those whose values are not known well enough to say that they are worse."""
    best = max(worth, key=lambda name: worth[name].value)
    gaps = {name: worth[best].value - known.value for name, known in worth.items()}
    errors = {name: math.hypot(worth[best].error, known.error) for name, known in worth.items()}
    return (best, *(name for name in worth if name != best and gaps[name] < CLEARLY * errors[name]))


@dataclass(frozen=True, eq=False)
class Case:
    """A problem with ten candidates.

    Attributes:
        name: as in `CASES`.
        kind: whether states are few whole numbers or vectors.
        half: whether the library was developed on it, or it was kept for the report.
        discount: γ, below 1.
        candidates: name -> policy.
        no_better: candidates that are by their making no better than the behaviour.
        log: seed -> log, with the behaviour's probabilities where actions are discrete.
        worth: what each candidate is worth, and the behaviour.
    """

    name: str
    kind: Literal["table", "control"]
    half: Half
    discount: float
    candidates: dict[str, CandidatePolicy]
    no_better: tuple[str, ...]
    log: Callable[[int], Transitions]
    worth: Callable[[], dict[str, Worth]]
