"""A finite Markov decision process with its exact occupancy, ratio, value and Q: the oracle of every test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from gradientdice.base.arrays import as_floats
from gradientdice.base.errors import InputError, require_distributions
from gradientdice.mdp.draws import RowDraws
from gradientdice.mdp.finite import FiniteMDP


@dataclass(frozen=True, eq=False)
class TabularMDP(FiniteMDP):
    """A Markov decision process with finitely many states and actions.

    Policies are (S, A) arrays of probabilities or anything that converts to one, as `TabularPolicy` does.
    State-action pairs are numbered state-major: pair = state · A + action.

    Attributes:
        transition: p(s'|s,a), shape (S, A, S).
        reward: E[r|s,a], shape (S, A).
        initial: the distribution of the first state, shape (S,).

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp = gd.mdp.boyan_chain("continuing")
        >>> target = np.tile([0.1, 0.9], (13, 1))
        >>> round(mdp.value(target, discount=1.0), 4)
        -2.2037
    """

    transition: Float[np.ndarray, "S A S"]
    reward: Float[np.ndarray, "S A"]
    initial: Float[np.ndarray, " S"]

    if TYPE_CHECKING:

        def __init__(self, transition: ArrayLike, reward: ArrayLike, initial: ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        transition = np.array(as_floats("transition", self.transition))
        if transition.ndim != 3 or transition.shape[0] != transition.shape[2]:
            raise InputError(f"transition must have shape (S, A, S), not {transition.shape}.")
        self._freeze(*transition.shape[:2])
        require_distributions("transition", transition)
        transition /= transition.sum(axis=-1, keepdims=True)
        transition.setflags(write=False)
        object.__setattr__(self, "transition", transition)

    def expected_next(self, values: Float[np.ndarray, " S"]) -> Float[np.ndarray, "S A"]:
        """Σ_s' p(s'|s,a) values(s')."""
        return self.transition @ values

    def state_chain(self, policy: ArrayLike) -> Float[np.ndarray, "S S"]:
        """P_π(s,s') = Σ_a π(a|s) p(s'|s,a)."""
        return np.einsum("sa,sat->st", self._policy(policy), self.transition)

    def pair_chain(self, policy: ArrayLike) -> Float[np.ndarray, "SA SA"]:
        """P_π((s,a),(s',a')) = p(s'|s,a) π(a'|s'), state-major."""
        pairs = self.num_states * self.num_actions
        chain = self.transition[:, :, :, None] * self._policy(policy)[None, None]
        return chain.reshape(pairs, pairs)

    def _next_draws(self) -> RowDraws:
        return RowDraws.dense(self.transition.reshape(-1, self.num_states))
