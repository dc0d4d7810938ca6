"""Does the past of a table's steps help to predict them?

In a Markov table everything that follows a pair (state, action) is independent of what came before it: neither the
reward nor r + γV' − Q goes with any function of the past, once both have their mean given the pair taken off. Noise is
measured by permuting the targets among the rows of each pair, which leaves all but that dependence as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Integer
from scipy.sparse import csr_array, hstack

from gradientdice.statistics.past import DRAWS, Past, chi_square_score, combined_score, normal_scores

# Deviations below this share of the values themselves are rounding.
ROUNDING = 1e-9
# Past shares of more actions than this, the most frequent ones, say little more.
MOST_ACTIONS = 8


class TableHistory:
    """A table's steps with their past: how much some residuals depend on it.

    All that does not depend on the residuals is computed once, so that those of many policies can be looked at.
    """

    def __init__(
        self,
        past: Past,
        states: Integer[np.ndarray, " m"],
        actions: Integer[np.ndarray, " m"],
        rewards: Float[np.ndarray, " m"],
        seed: int,
    ) -> None:
        states, actions, self._all_pairs = _numbered(states, actions)
        self._past, self._known = past, past.known
        self._pairs = self._all_pairs[self._known]
        self._places, self._orders = _within_pairs(self._pairs, np.random.default_rng(seed))
        target = _centred(rewards, self._all_pairs)
        groups = [group[self._known] for group in _instruments(past, states, actions, self._all_pairs)]
        self._groups = Stacked.of([*groups, *self._histories(target)])
        self._rewards = self._versions(target)
        self._scores = self._groups.scores(self._rewards)

    def dependence(self, residual: Float[np.ndarray, " m"]) -> float:
        """How much rewards and residuals depend on the past, in standard deviations of noise."""
        target = _centred(residual, self._all_pairs)
        own, versions = Stacked.of(self._histories(target)), self._versions(target)
        scores = [*self._groups.scores(versions), *own.scores(versions), *self._scores]
        return combined_score([*scores, *own.scores(self._rewards)])

    def _versions(self, target: Float[np.ndarray, " m"]) -> Float[np.ndarray, "k draws"]:
        """The target at the steps that have a past, and its versions with each pair's steps in random order."""
        values = _centred(target[self._known], self._pairs)
        versions = np.empty((len(values), 1 + DRAWS))
        versions[:, 0] = values
        versions[self._places, 1:] = values[self._orders]
        return versions

    def _histories(self, target: Float[np.ndarray, " m"]) -> list[csr_array]:
        """Surprises so far, at steps with a past: of the last step and of all steps, for all pairs and by pair."""
        nowhere, groups = np.zeros(len(self._pairs), dtype=np.int64), []
        for history in (self._past.before(target), self._past.mean(target)):
            values = history[self._known]
            groups += [_at(nowhere, values), _at(self._pairs, values)]
        return groups


@dataclass(frozen=True, eq=False)
class Stacked:
    """Groups of instruments side by side, so that one pass over a target's versions serves all.

    Attributes:
        matrix: (k, columns) all of them, one row per step.
        ends: where each group's columns end.
    """

    matrix: csr_array
    ends: tuple[int, ...]

    @classmethod
    def of(cls, groups: Sequence[csr_array]) -> Stacked:
        """Puts groups side by side."""
        widths = [(group.shape or (0, 0))[1] for group in groups]
        return cls(csr_array(hstack(groups, format="csr")), tuple(np.cumsum(widths)))

    def scores(self, versions: Float[np.ndarray, "k draws"]) -> list[Float[np.ndarray, " draws"]]:
        """For each group the score of a target, and those of its random versions after it."""
        products = np.asarray(self.matrix.T @ versions)
        parts = np.split(products, self.ends[:-1])
        return [normal_scores(np.einsum("ij,ij->j", part, part)) for part in parts]


class TableChange:
    """A table's steps in the eras in which they were logged: how much some residuals depend on them.

    It is an analysis of variance within each pair, and one of what all pairs have in common. That of the rewards is
    made once.
    """

    def __init__(
        self,
        eras: Int[np.ndarray, " m"],
        states: Integer[np.ndarray, " m"],
        actions: Integer[np.ndarray, " m"],
        rewards: Float[np.ndarray, " m"],
    ) -> None:
        _, _, self._pairs = _numbered(states, actions)
        self._eras = eras
        self._of_rewards = _era_scores(rewards, self._pairs, eras)

    def score(self, residual: Float[np.ndarray, " m"]) -> float:
        """How much rewards and residuals depend on the era, in standard deviations of noise: the largest score."""
        return max(*_era_scores(residual, self._pairs, self._eras), *self._of_rewards)


def _era_scores(raw: np.ndarray, pairs: np.ndarray, eras: np.ndarray) -> list[float]:
    """Scores of what is left of some values in each era, less their means in each pair: by pair, and for all pairs."""
    values = _centred(raw, pairs)
    count = int(eras.max()) + 1
    cells = np.bincount(pairs * count + eras, minlength=(pairs.max() + 1) * count).reshape(-1, count)
    sums = np.bincount(pairs * count + eras, values, minlength=cells.size).reshape(cells.shape)
    rows = cells.sum(axis=1)
    variance = np.bincount(pairs, values**2) / np.maximum(rows - 1, 1)
    used = (variance > (ROUNDING * float(np.abs(raw).max())) ** 2) & (rows > 1)
    if not used.any():
        return [0.0]
    cells, sums, variance = cells[used], sums[used], variance[used]
    inside = np.divide(sums**2, cells, out=np.zeros_like(sums), where=cells > 0) / variance[:, None]
    each = chi_square_score(float(inside.sum()), int(np.sum(np.count_nonzero(cells, axis=1) - 1)))
    noise = variance @ cells
    common = chi_square_score(float(np.sum(sums.sum(axis=0)[noise > 0] ** 2 / noise[noise > 0])), count - 1)
    return [each, common]


def _numbered(states: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States, actions and pairs, numbered from 0 without gaps."""
    _, states = np.unique(states, return_inverse=True)
    _, actions = np.unique(actions, return_inverse=True)
    _, pairs = np.unique(states * (actions.max() + 1) + actions, return_inverse=True)
    return states, actions, pairs


def _instruments(past: Past, states: np.ndarray, actions: np.ndarray, pairs: np.ndarray) -> list[csr_array]:
    """Groups of functions of the past: pairs and actions, of the last step and of all steps so far."""
    ones = np.ones(len(pairs))
    before, count = past.before(pairs), int(pairs.max()) + 1
    frequent = np.argsort(-np.bincount(actions), kind="stable")[:MOST_ACTIONS]
    # How much more often than the log in those states each action was taken so far.
    habits = [past.mean(_centred((actions == action).astype(np.float64), states)) for action in frequent]
    return [
        _columns(before, ones),
        _columns(before * count + pairs, ones),
        _columns(past.before(pairs, 2), ones),
        csr_array(hstack([_columns(pairs, habit) for habit in habits], format="csr")),
        _columns(pairs, np.log1p(past.steps)),
    ]


def _columns(codes: np.ndarray, values: np.ndarray) -> csr_array:
    """(m, codes) a column for each code, with the values at its steps."""
    return _at(np.unique(codes, return_inverse=True)[1], values)


def _at(columns: np.ndarray, values: np.ndarray) -> csr_array:
    """(m, columns) the values, each in its column."""
    # With one entry per row the matrix is in its final form already.
    return csr_array((values, columns, np.arange(len(columns) + 1)), shape=(len(columns), int(columns.max()) + 1))


def _centred(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    counts = np.bincount(groups)
    return values - (np.bincount(groups, values) / np.maximum(counts, 1))[groups]


def _within_pairs(pairs: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The steps pair by pair, and (m, draws) the same steps with those of each pair in random order."""
    # A number below 1 does not change the order of the pairs.
    orders = np.argsort(pairs + rng.random((DRAWS, len(pairs))), axis=1)
    return np.argsort(pairs, kind="stable"), orders.T
