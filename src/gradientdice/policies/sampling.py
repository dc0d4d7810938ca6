"""A target policy that can only be sampled, as with continuous actions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Num

from gradientdice.base.arrays import as_numbers, as_states, require_moderate, require_rng
from gradientdice.base.errors import InputError, require_callable, require_count, require_finite, require_flag
from gradientdice.policies.blocks import asked_in_blocks


@dataclass(frozen=True, eq=False)
class SamplingPolicy:
    """Actions drawn from π(·|s) for a batch of states.

    Attributes:
        function: (states (n, …), rng) -> actions (n, action_dim) or (n,).
        draws: how many actions to draw in each state; None leaves it to the function class.
        jax: whether the function is a JAX function (states, key) -> actions, with a key of `jax.random` in place of the
            NumPy generator: a simulation of the policy is then one compiled program.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> policy = gd.SamplingPolicy(lambda states, rng: rng.normal(size=(len(states), 1)))
        >>> policy.sample(np.zeros((3, 4)), np.random.default_rng(0)).shape
        (3, 1)
    """

    function: Callable[[Any, Any], Any]
    draws: int | None = None
    jax: bool = False

    def __post_init__(self) -> None:
        require_callable("function", self.function, "(states, rng) -> actions")
        if self.draws is not None:
            require_count("draws", self.draws)
        require_flag("jax", self.jax)

    def sample(self, states: Num[np.ndarray, "n ..."], rng: np.random.Generator) -> Float[np.ndarray, "n ..."]:
        """One action for each given state, checked."""
        states = as_states(states)
        require_rng(rng)
        actions = asked_in_blocks(lambda block: self._actions(block, rng), states)
        require_finite("The policy's actions", actions)
        require_moderate("The policy's actions", actions)
        return actions

    def returned(self, states: Num[np.ndarray, "n ..."], rng: np.random.Generator) -> Any:
        """The function's own answer for these states, unchecked: numbers, codes or words."""
        return self.function(states, _key(rng) if self.jax else rng)

    def _actions(self, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        actions = as_numbers("The policy's actions", self.returned(states, rng))
        actions = actions.astype(np.float64) if actions.dtype.kind == "b" else actions
        if actions.ndim not in (1, 2) or len(actions) != len(states):
            raise InputError(
                f"The policy returned actions of shape {actions.shape} for {len(states)} states; "
                "it must return one row per state."
            )
        return actions


def _key(rng: np.random.Generator) -> Any:
    """A key of `jax.random` drawn from a NumPy generator."""
    import jax

    return jax.random.key(int(rng.integers(2**31)))
