"""A target policy as a function from states to action probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Num

from gradientdice.base.arrays import as_floats, as_states, require_memory
from gradientdice.base.errors import InputError, require_callable, require_count, require_distributions, require_flag
from gradientdice.log.fields import as_names
from gradientdice.policies.blocks import asked_in_blocks


@dataclass(frozen=True, eq=False)
class DiscretePolicy:
    """π(a|s) as a function of a batch of states, from any framework that can give NumPy arrays.

    Attributes:
        function: states (n, …) -> probabilities (n, num_actions).
        num_actions: how many actions there are.
        jax: whether the function is a JAX function: a simulation of the policy is then one compiled program.
        action_names: the word of each action, in the order of the columns; a log whose actions are words is then read
            in this order.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> policy = gd.DiscretePolicy(
        ...     lambda states: np.full((len(states), 2), 0.5), num_actions=2
        ... )
        >>> policy.probabilities_at(np.zeros((3, 4))).shape
        (3, 2)
    """

    function: Callable[[Any], Any]
    num_actions: int
    jax: bool = False
    action_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        require_callable("function", self.function, "states -> probabilities")
        require_count("num_actions", self.num_actions)
        require_flag("jax", self.jax)
        if self.action_names is not None:
            names = as_names("action_names", self.action_names, np.zeros(0, dtype=np.int64))
            if len(names) != self.num_actions:
                raise InputError(f"action_names has {len(names)} words for {self.num_actions} actions.")
            object.__setattr__(self, "action_names", names)

    def probabilities_at(self, states: Num[np.ndarray, "n ..."]) -> Float[np.ndarray, "n A"]:
        """π(·|s) for each given state, checked."""
        states = as_states(states)
        size = len(states), self.num_actions
        require_memory("The policy's probabilities", *size, remedy="Give a SamplingPolicy, which draws actions.")
        probabilities = asked_in_blocks(self._probabilities, states)
        require_distributions("The policy's probabilities", probabilities)
        return probabilities

    def _probabilities(self, states: np.ndarray) -> np.ndarray:
        probabilities = as_floats("The policy's probabilities", self.function(states))
        if probabilities.shape != (len(states), self.num_actions):
            raise InputError(
                f"The policy returned shape {probabilities.shape} for {len(states)} states; "
                f"it must return {(len(states), self.num_actions)}."
            )
        return probabilities
