"""Paths of a policy in a table's log: each step is a logged row of the pair, drawn at random.

A drawn row has its own reward and next state, so that the rewards' noise is part of the simulated returns. A state
without rows ends the path.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from gradientdice.problem.empirical import Cells
from gradientdice.problem.problem import Problem
from gradientdice.problem.support import restricted_to_logged

# A path is left after so many steps more than the longest logged episode, or where what follows counts less than this.
PATIENCE, NEGLIGIBLE = 10, 1e-4


@dataclass(frozen=True, eq=False)
class TablePaths:
    """A log from which steps are drawn.

    Attributes:
        discount: γ.
        rows: (r,) the rows that may be drawn, by pair.
        reached: (r,) the sum of the weights up to each of them.
        begin: (P + 1,) the sum of the weights before each pair.
        chances: (S, A) the policy restricted to pairs that have rows, summed over actions.
        following: (n,) the state that each row leads to.
        rewards: (n,).
        end: the state after the end, and of paths that cannot go on.
        longest: after how many steps a path is left.
    """

    discount: float
    rows: Int[np.ndarray, " r"]
    reached: Float[np.ndarray, " r"]
    begin: Float[np.ndarray, " p"]
    chances: Float[np.ndarray, "S A"]
    following: Int[np.ndarray, " n"]
    rewards: Float[np.ndarray, " n"]
    end: int
    longest: int

    @classmethod
    def of(
        cls, problem: Problem, discount: float, horizon: int | None = None, used: Bool[np.ndarray, " n"] | None = None
    ) -> TablePaths:
        """The paths of a problem with a table.

        Args:
            problem: the log and the policy.
            discount: γ.
            horizon: after how many steps a path is left; None until it ends.
            used: the rows that may be drawn; None for all.
        """
        cells, data = table_cells(problem), problem.data
        states, actions = cells.policy.shape
        weights = data.row_weights if used is None else np.where(used, data.row_weights, 0.0)
        logged = np.bincount(cells.pair, weights, minlength=states * actions).reshape(states, actions)
        policy, _ = restricted_to_logged(cells.policy, logged)
        rows = np.argsort(cells.pair, kind="stable")
        rows = rows[weights[rows] > 0]
        alive = np.append(logged.sum(axis=1) > 0, False)
        following = np.where(alive[cells.following], cells.following, states)
        longest = horizon or _longest(problem, discount)
        return cls(
            discount,
            rows,
            np.cumsum(weights[rows]),
            np.concatenate([[0.0], np.cumsum(logged.ravel())]),
            np.cumsum(policy, axis=1),
            following,
            data.rewards,
            states,
            longest,
        )

    def returns(
        self, states: Int[np.ndarray, " p"], rng: np.random.Generator, actions: Int[np.ndarray, " p"] | None = None
    ) -> tuple[Float[np.ndarray, " p"], float]:
        """The return of a path from each state (with a first action if given), and the share that did not end."""
        total, current = np.zeros(len(states)), np.array(states)
        active = np.flatnonzero(self._has_rows(current))
        for step in range(self.longest):
            if not len(active):
                break
            at = current[active]
            if step == 0 and actions is not None:
                action = actions[active]
                active = active[self._pair_has_rows(at, action)]
                at, action = current[active], actions[active]
            else:
                action = (self.chances[at] < rng.random(len(at))[:, None]).sum(axis=1)
                action = np.minimum(action, self.chances.shape[1] - 1)
            pair = at * self.chances.shape[1] + action
            level = self.begin[pair] + rng.random(len(pair)) * (self.begin[pair + 1] - self.begin[pair])
            row = self.rows[np.minimum(np.searchsorted(self.reached, level, side="right"), len(self.rows) - 1)]
            total[active] += self.discount**step * self.rewards[row]
            current[active] = self.following[row]
            active = active[current[active] < self.end]
        return total, len(active) / max(1, len(states))

    def _has_rows(self, states: np.ndarray) -> np.ndarray:
        size = self.chances.shape[1]
        return self.begin[(states + 1) * size] > self.begin[states * size]

    def _pair_has_rows(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        pair = states * self.chances.shape[1] + actions
        return self.begin[pair + 1] > self.begin[pair]


def table_cells(problem: Problem) -> Cells:
    """Where the rows of a table's log lie; the state after the end, where there is one, is left out."""
    assert problem.support is not None
    support, data = problem.support, problem.support.data
    table, ended = support.table, data.ended
    states, actions = table.features.shape
    following = np.where(ended, states, table.index(np.where(ended, data.states, data.next_states)))
    starts = None if data.start_states is None else table.index(data.start_states)
    pair = table.index(data.states) * actions + data.actions
    return Cells(pair, following, starts, support.probabilities, states if ended.any() else None)


def _longest(problem: Problem, discount: float) -> int:
    if discount < 1:
        return max(1, int(np.ceil(np.log(NEGLIGIBLE) / np.log(discount)))) if discount > 0 else 1
    episodes = problem.data.episodes
    logged = 1 if episodes is None else int(np.unique(episodes, return_counts=True)[1].max())
    return PATIENCE * max(logged, 100)
