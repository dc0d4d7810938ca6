"""A family of logs: a problem with a known value, and a way of logging it that is honest or sets a trap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from gradientdice.log.transitions import Transitions
from gradientdice.policies import Policy

Half = Literal["develop", "report"]


@dataclass(frozen=True, eq=False)
class Case:
    """One log as a user would hand it to `evaluate`.

    Attributes:
        data: the log.
        policy: the policy to evaluate.
        options: further arguments of `evaluate`.
    """

    data: Transitions
    policy: Policy
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Family:
    """Logs of one problem, logged in one way.

    Attributes:
        name: in the table.
        trap: which trap it sets, the same words for all families that set it; "honest" if it sets none.
        states: whether states are numbers of a table or continuous.
        half: whether thresholds may be set on it, or it is only run at the end, for the page.
        discount: γ.
        truth: the policy's value: exact, or from a simulation so long that its error does not matter.
        log: a log from a generator.
    """

    name: str
    trap: str
    states: Literal["table", "continuous"]
    half: Half
    discount: float
    truth: Callable[[], float]
    log: Callable[[np.random.Generator], Case]
