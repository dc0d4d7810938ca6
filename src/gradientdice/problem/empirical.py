"""The empirical MDP of a tabular log: exact occupancy, ratio and Q by sparse solves, in memory proportional to the log.

With a table and no ridge, the ratio that solves the flow equations is τ = d̂ / d̂_μ, with d̂ the occupancy in the
empirical MDP, and the matching Q is that MDP's. Both are sparse linear systems over states: nothing of the size (S·A)²
exists. The answer is the one that the dense closed form gives.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Integer

from gradientdice.base.errors import starts_missing
from gradientdice.mdp.finite import SparseMDP
from gradientdice.mdp.markov_chains import closed_classes
from gradientdice.problem.places import Places
from gradientdice.problem.support import TableSupport, restricted_to_logged

# A closed set of states with fewer rows than this is taken to be closed by chance.
POCKET_ROWS = 30


@dataclass(frozen=True, eq=False)
class TabularSolution:
    """The empirical MDP, solved at one discount.

    Attributes:
        ratio: (n,) τ at each row, a ratio to the rows alone.
        residual: (n,) r + γV' − Q, less the average reward at discount 1.
        values: (S,) V at the states that have rows.
        initial_values: (n0,) V at the initial states; None if they play no part.
        average: the average reward at discount 1, else 0.
        mean_ratio: the mean of τ, the absorbing state's mass included.
        unlogged: the share of the policy's steps that the log does not contain: with an unlogged action, to a state
            without rows, or out of a small closed set.
        restarts: (n,) the rows after which an episode restarts; None if there are none.
        spread: the largest difference between the Q of two logged pairs, the end of an episode among them.
    """

    ratio: Float[np.ndarray, " n"]
    residual: Float[np.ndarray, " n"]
    values: Float[np.ndarray, " S"]
    initial_values: Float[np.ndarray, " n0"] | None
    average: float
    mean_ratio: float
    unlogged: float
    restarts: Bool[np.ndarray, " n"] | None
    spread: float


@dataclass(frozen=True, eq=False)
class Cells:
    """Where each row of a log lies in its empirical MDP; a pair is state · A + action.

    Attributes:
        pair: (n,) the pair of each row.
        following: (n,) the state that it leads to.
        starts: (n0,) the initial states; None if they are not known.
        policy: (S, A) the policy restricted to logged pairs, that of the end among them.
        end: the number of the state after the end, which is the last; None if nothing ended.
    """

    pair: Integer[np.ndarray, " n"]
    following: Integer[np.ndarray, " n"]
    starts: Integer[np.ndarray, " n0"] | None
    policy: Float[np.ndarray, "S A"]
    end: int | None


class EmpiricalMDP:
    """The log as an MDP over the states in which it has rows.

    Where episodes end there is one more state, the last: below discount 1 it absorbs, at discount 1 it is a portal to
    the next start, which takes no time.

    Attributes:
        mdp: the model, at discount 1 with small closed sets of states left for a start.
        is_irregular: whether, at discount 1, the log itself has several closed sets of states, or a small one that
            its other states lead to.
    """

    def __init__(self, support: TableSupport, discount: float, places: Places) -> None:
        data = support.data
        self._support, self.discount, self._data, self._places = support, discount, data, places
        self._weights, self._ended, self._end = data.row_weights, data.ended, places.end
        if places.initial is None and (discount < 1 or self._ended.any()):
            raise starts_missing(discount)
        policy = np.zeros(places.logged.shape)
        policy[:, 0] = 1.0  # in the absorbing state
        policy[: len(support.probabilities)] = support.probabilities
        self._policy, self._missing = restricted_to_logged(policy, places.logged)
        if self._end is not None:
            self._missing[self._end] = 0.0
        self._moved = np.zeros(len(data), dtype=bool)
        self.is_irregular = False
        if discount == 1 and self._leave_pockets():
            self.is_irregular = True
        self.mdp = self._places.mdp

    @property
    def cells(self) -> Cells:
        """Where each row lies, for those who weight the rows in other ways."""
        places = self._places
        return Cells(places.pair, places.following, places.initial, self._policy, places.end)

    def ratio_from(self, starts: Float[np.ndarray, " n0"]) -> Float[np.ndarray, " n"]:
        """τ at each row if the initial states counted this often; below discount 1."""
        assert self._places.initial is not None
        start = np.bincount(self._places.initial, starts, minlength=len(self._policy))
        begun = SparseMDP(self.mdp.transition, self.mdp.reward, start / start.sum())
        return self._ratio(begun.occupancy(self._policy, self.discount))

    @cached_property
    def solution(self) -> TabularSolution:
        """τ, r + γV' − Q and V by exact solves.

        Raises:
            InputError: at discount 1, if the average reward depends on where an episode starts.
        """
        mdp, discount, weights = self.mdp, self.discount, self._weights
        occupancy = mdp.occupancy(self._policy, discount)
        outside = 0.0 if self._end is None else float(occupancy[self._end].sum())
        average = 0.0
        unlogged = float(occupancy.sum(axis=1) @ self._missing) / (1 - outside)
        if discount == 1:
            occupancy, outside = occupancy / (1 - outside), 0.0
            real = np.ones(occupancy.shape, dtype=bool)
            if self._end is not None:
                real[self._end] = False
            average = float(np.sum((occupancy * mdp.reward)[real]))
            # With the average taken off every step but the portal's, the chain's own average is 0.
            mdp = SparseMDP(mdp.transition, np.where(real, mdp.reward - average, 0.0), mdp.initial)
        q = mdp.q_values(self._policy, discount)
        values = np.sum(self._policy * q, axis=1)
        own = q.ravel()[self._places.pair] + average
        ratio = self._ratio(occupancy)
        residual = self._data.rewards + discount * values[self._places.following] - own
        moved = self._moved | (self._support.redirected & ~self._ended)
        unlogged += discount * float(weights @ (ratio * moved)) / weights.sum()
        unlogged += (1 - discount) * self._support.redirected_starts
        restarts = self._ended if discount == 1 and self._end is not None else None
        plays = self._places.initial is not None and (discount < 1 or restarts is not None)
        mean_ratio = float(np.average(ratio, weights=weights)) + outside
        starts = values[self._places.initial] if plays and self._places.initial is not None else None
        known = self._places.logged > 0
        if self._end is not None:
            known[self._end] = True
        spread = float(np.ptp(q[known]))
        return TabularSolution(
            ratio, residual, values[: self._end], starts, average, mean_ratio, unlogged, restarts, spread
        )

    def _ratio(self, occupancy: Float[np.ndarray, "S A"]) -> Float[np.ndarray, " n"]:
        """The occupancy beside the log's share, at each row."""
        share = (self._places.logged.ravel() / self._weights.sum())[self._places.pair]
        # Rows of weight 0 have no share, and no ratio.
        return np.divide(occupancy.ravel()[self._places.pair], share, out=np.zeros_like(share), where=share > 0)

    def _leave_pockets(self) -> bool:
        """At discount 1, steps into small closed sets of states are sent to the first start; whether there were any.

        In a large log some states lead to each other only, by chance. A set with many rows is another matter: there
        the average may depend on where an episode starts, and then the solve refuses the log.
        """
        places, own = self._places, self._places.pair // self._policy.shape[1]
        rows = np.bincount(own, self._data.distinct_rows, minlength=len(self._policy))
        pocket = np.zeros(len(self._policy), dtype=bool)
        classes = closed_classes(places.mdp.state_chain(self._policy))
        self.is_irregular = len(classes) > 1
        for states in classes:
            pocket[states] = rows[states].sum() < POCKET_ROWS and self._end not in states
        starts = own if places.initial is None else places.counted_starts
        starts = starts[~pocket[starts]]
        if not pocket.any() or not len(starts):
            return False
        first = starts[0]
        self._moved = pocket[places.following] & ~pocket[own]
        self._places = replace(
            places,
            following=np.where(pocket[places.following], first, places.following),
            initial=None if places.initial is None else np.where(pocket[places.initial], first, places.initial),
        )
        return True
