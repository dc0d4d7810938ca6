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

from gradientdice.problem.problem import Problem
from gradientdice.statistics.posterior.units import Drawn, WeightedCells


@dataclass(frozen=True, eq=False)
class TableDraws:
    """A policy's empirical MDP, ready to be weighted.

    Attributes:
        discount: γ.
        log: the log by cells.
        pair: (k,) the pair of each cell.
        share: (k,) π of the cell's action in its state.
        to_pair: (P, k) sums over the cells of a pair.
        to_step: (S², k) sums over the cells that lead from one state to another, the end among the latter.
        to_state: (S, k) sums over the cells of a state.
        to_start: (S, m) sums over the kinds of initial states; None without any.
        num_states: S, the state after the end included.
        end: the number of the state after the end; None if nothing ended.
    """

    discount: float
    log: WeightedCells
    pair: Int[np.ndarray, " k"]
    share: Float[np.ndarray, " k"]
    to_pair: csr_array
    to_step: csr_array
    to_state: csr_array
    to_start: csr_array | None
    num_states: int
    end: int | None

    @classmethod
    def of(cls, problem: Problem, discount: float, log: WeightedCells) -> TableDraws:
        """The empirical MDP of a problem with a table."""
        cells, first = problem.empirical(discount).cells, log.first
        size, actions = cells.policy.shape
        pair, following = cells.pair[first], cells.following[first]
        state = pair // actions
        to_start = None
        if cells.starts is not None and log.first_start is not None:
            to_start = _summing(cells.starts[log.first_start], size)
        return cls(
            discount,
            log,
            pair,
            cells.policy.ravel()[pair],
            _summing(pair, size * actions),
            _summing(state * size + following, size * size),
            _summing(state, size),
            to_start,
            size,
            cells.end,
        )

    @property
    def size(self) -> int:
        """How many numbers a draw has: those of the transitions, the state after the end included, and of the cells."""
        return len(self.share) + self.num_states**2

    def values(self, drawn: Drawn) -> Float[np.ndarray, " b"]:
        """ρ of each draw."""
        # With the draws last, as sparse products are quickest.
        units = np.ascontiguousarray(drawn.rows.T)
        rows, rewards = self.log.rows @ units, self.log.rewards @ units
        each = self.share[:, None] / (self.to_pair @ rows)[self.pair]
        size = self.num_states
        chain = (self.to_step @ (each * rows)).T.reshape(-1, size, size)
        reward = (self.to_state @ (each * rewards)).T
        begin = None
        starts = self.log.starts_of(drawn.starts, units)
        if starts is not None and self.to_start is not None:
            begun = self.to_start @ starts
            begin = (begun / begun.sum(axis=0)).T
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
    """(size, k) a one for each column, at its place."""
    return csr_array((np.ones(len(place)), (place, np.arange(len(place)))), shape=(size, len(place)))
