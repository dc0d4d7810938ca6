"""Values of a policy in many reweighted empirical MDPs at once: batches of products and of small solves.

With counts N(s,a,s') that are linear in the weights, P_π(s,s') = Σ_a π(a|s) N(s,a,s')/N(s,a), r_π alike, and

    γ < 1:  ρ = (1−γ) μ0ᵀ(I − γP_π)⁻¹ r_π,      γ = 1:  ρ = dᵀr_π with dᵀ(I − P_π) = 0, Σd = 1,

where at γ = 1 ended episodes go on from μ0. Each draw is exactly what the closed form gives with these weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import csr_array

from gradientdice.inference.posterior.units import Drawn, RowKinds
from gradientdice.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class TableDraws:
    """A policy's empirical MDP, ready to be weighted.

    Attributes:
        discount: γ.
        kinds: of the log's rows.
        pair: (k,) the pair of each kind.
        share: (k,) π of the kind's action in its state.
        reward: (k,) of each kind.
        to_pair: (k, P) sums over the kinds of a pair.
        to_step: (k, S²) sums over the kinds that lead from one state to another, the end among the latter.
        to_state: (k, S) sums over the kinds of a state.
        start: (m,) the state of each kind of initial state; None without any.
        end: the number of the state after the end; None if nothing ended.
    """

    discount: float
    kinds: RowKinds
    pair: Int[np.ndarray, " k"]
    share: Float[np.ndarray, " k"]
    reward: Float[np.ndarray, " k"]
    to_pair: csr_array
    to_step: csr_array
    to_state: csr_array
    start: Int[np.ndarray, " m"] | None
    end: int | None

    @classmethod
    def of(cls, problem: Problem, discount: float, kinds: RowKinds) -> TableDraws:
        """The empirical MDP of a problem with a table."""
        model = problem.empirical(discount)
        cells, first = model.cells, kinds.first
        size, actions = cells.policy.shape
        pair, following = cells.pair[first], cells.following[first]
        state = pair // actions
        start = None
        if cells.starts is not None and kinds.first_start is not None:
            start = cells.starts[kinds.first_start]
        return cls(
            discount,
            kinds,
            pair,
            cells.policy.ravel()[pair],
            problem.data.rewards[first],
            _summing(pair, size * actions),
            _summing(state * size + following, size * size),
            _summing(state, size),
            start,
            cells.end,
        )

    @property
    def num_states(self) -> int:
        """S, the state after the end included."""
        return self.to_state.shape[1]

    def values(self, drawn: Drawn) -> Float[np.ndarray, " b"]:
        """ρ of each draw."""
        rows, starts = self.kinds.counts(drawn)
        logged = rows @ self.to_pair
        share = rows * self.share / logged[:, self.pair]
        size = self.num_states
        chain = (share @ self.to_step).reshape(-1, size, size)
        reward = (share * self.reward) @ self.to_state
        begin = None
        if starts is not None and self.start is not None:
            begin = starts @ _summing(self.start, size)
            begin /= begin.sum(axis=1, keepdims=True)
        return chain_values(chain, reward, begin, self.discount, self.end)


def chain_values(
    chain: Float[np.ndarray, "b before after"],
    reward: Float[np.ndarray, "b before"],
    start: Float[np.ndarray, "b started"] | None,
    discount: float,
    end: int | None,
) -> Float[np.ndarray, " b"]:
    """ρ of each of a batch of Markov chains.

    Args:
        chain: P_π; what leads to the end leads to the state `end`, which needs no row of its own.
        reward: r_π.
        start: the initial distribution, with or without the end; None at discount 1 if nothing ends.
        discount: γ.
        end: the state after the end, the last one; None if nothing ends.
    """
    inside = chain.shape[1] if end is None else end
    step, reward = chain[:, :inside, :inside], reward[:, :inside]
    if discount < 1:
        assert start is not None
        system = np.eye(inside) - discount * step
        values = np.linalg.solve(system, reward[..., None])[..., 0]
        return (1 - discount) * np.sum(start[:, :inside] * values, axis=1)
    if end is not None:
        assert start is not None
        step = step + chain[:, :inside, end, None] * start[:, None, :inside]
    # The equations of d add up to 0 = 0: the last one is replaced by Σd = 1.
    system = np.eye(inside) - np.swapaxes(step, 1, 2)
    system[:, -1] = 1.0
    right = np.zeros((len(step), inside, 1))
    right[:, -1] = 1.0
    stationary = np.linalg.solve(system, right)[..., 0]
    return np.sum(stationary * reward, axis=1)


def _summing(place: Int[np.ndarray, " k"], size: int) -> csr_array:
    """(k, size) a one for each kind, at its place."""
    return csr_array((np.ones(len(place)), (np.arange(len(place)), place)), shape=(len(place), size))
