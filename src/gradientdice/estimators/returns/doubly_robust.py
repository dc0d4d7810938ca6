"""The doubly robust distribution function of a table's return: with Z a model's return from a pair,

    F̂(x) = E[V_0(x)] + Σ_t Σ_i ω_it (V_{t+1}(x) − Q_t(x)),
    Q_t(x) = P(y_t + γᵗ Z(s_t, a_t) ≤ x),   V_t(x) = Σ_a π(a|s_t) P(y_t + γᵗ Z(s_t, a) ≤ x),   y_t = Σ_{k<t} γᵏ r_k,

ω_it the products of π/μ up to t, normalised over the episodes at each t. After an end V is 1{G ≤ x}; at a cut it is the
model's. Where the model is right, all that is left of the weights' noise is that of single steps; where it is wrong,
the terms in between mend it. The model draws logged rows (`table_paths.py`) of the episodes' other folds.

References:
    Huang, Leqi, Lipton and Azizzadenesheli, Off-Policy Risk Assessment for Markov Decision Processes, AISTATS 2022.
    There the weights are not normalised; here they are, and the model is that of a table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from gradientdice.estimators.behavior import Episodes
from gradientdice.estimators.doubly_robust.cross_fit import FOLDS
from gradientdice.estimators.returns.episodes import EpisodeReturns, by_unit
from gradientdice.estimators.returns.points import StepFunction, monotone, representative
from gradientdice.estimators.returns.table_paths import TablePaths, table_cells
from gradientdice.estimators.trajectory.step_weights import StepWeights
from gradientdice.problem.problem import Problem

# Simulated steps for each fold, and how many returns of each pair they are to give. Few do: Z need not be right.
STEPS, FEWEST, MOST = 1e7, 20, 200


def doubly_robust_function(problem: Problem, found: EpisodeReturns, weights: StepWeights) -> StepFunction:
    """The distribution function, and each episode's share in its error.

    Args:
        problem: with a table.
        found: the episodes' returns, until they end.
        weights: ω, normalised at each time.
    """
    data, episodes, discount = problem.data, found.episodes, weights.discount
    cells, folds = table_cells(problem), problem.folds(FOLDS).rows
    models = [_Returns.of(problem, discount, folds != fold, episodes, fold) for fold in range(FOLDS)]
    states = cells.pair // cells.policy.shape[1]
    first, fold_of = states[episodes.first], folds[episodes.first]
    simulated = np.concatenate([models[fold].from_states(first[fold_of == fold]) for fold in range(FOLDS)])
    seen = (found.low + found.high) / 2
    points = representative(
        np.concatenate([seen, simulated]),
        np.concatenate([np.full(len(seen), 1 / len(seen)), np.full(len(simulated), 1 / len(simulated))]),
    )
    # A return counts for the nearest point, so that rounding does not matter.
    edges = np.append((points[1:] + points[:-1]) / 2, np.inf)

    def below(rows: np.ndarray, places: np.ndarray, so_far: np.ndarray, factor: float, at_states: bool) -> np.ndarray:
        result = np.empty((len(rows), len(points)))
        for fold, model in enumerate(models):
            own = np.flatnonzero(folds[rows] == fold)
            of_model = model.states_below if at_states else model.pairs_below
            result[own] = of_model(edges - so_far[own, None], places[own], factor)
        return result

    share = episodes.weights / episodes.weights.sum()
    zero = np.zeros(len(episodes))
    start = below(episodes.first, first, zero, 1.0, True)
    cdf = share @ start
    shares = share[:, None] * (start - cdf)
    so_far = zero
    for step, rows in episodes.forwards():
        which, factor = episodes.index[rows], discount ** float(step)
        now = below(rows, cells.pair[rows], so_far[which], factor, False)
        so_far = so_far + np.bincount(which, factor * data.rewards[rows], minlength=len(episodes))
        after = below(rows, cells.following[rows], so_far[which], discount * factor, True)
        change, own = after - now, weights.rows[rows]
        mean = own @ change
        cdf = cdf + mean
        shares[which] += own[:, None] * (change - mean)
        # Episodes that are over keep their weight, with no change.
        over = np.flatnonzero(episodes.length <= step)
        shares[over] -= np.exp(weights.log_final[over] - weights.log_total[step])[:, None] * mean
    return StepFunction(points, monotone(cdf), by_unit(data, episodes, shares))


@dataclass(frozen=True, eq=False)
class _Returns:
    """Sorted returns of a model from every pair, and the policy that mixes those of a state.

    V must be exactly the mixture of Q: the terms of the sum then cancel on average, whatever the model is.
    """

    of_pairs: Float[np.ndarray, "P j"]
    policy: Float[np.ndarray, "S A"]

    @classmethod
    def of(cls, problem: Problem, discount: float, used: np.ndarray, episodes: Episodes, seed: int) -> _Returns:
        paths, policy = TablePaths.of(problem, discount, used=used), table_cells(problem).policy
        states, actions = policy.shape
        rng = np.random.default_rng([problem.seed, seed])
        usual = min(paths.longest, 2 * float(episodes.length.mean()) + 1)
        count = int(np.clip(STEPS / (usual * states * actions), FEWEST, MOST))
        pairs = np.repeat(np.arange(states * actions), count)
        found, _ = paths.returns(pairs // actions, rng, pairs % actions)
        return cls(np.sort(found.reshape(-1, count), axis=1), policy)

    def from_states(self, states: Int[np.ndarray, " n"]) -> Float[np.ndarray, " m"]:
        """The returns of all pairs of some states."""
        actions = self.policy.shape[1]
        return self.of_pairs.reshape(-1, actions, self.of_pairs.shape[1])[np.unique(states)].ravel()

    def pairs_below(
        self, room: Float[np.ndarray, "n m"], pairs: Int[np.ndarray, " n"], factor: float
    ) -> Float[np.ndarray, "n m"]:
        """P(factor · Z ≤ room) at each pair."""
        if factor == 0:
            return (room >= 0).astype(np.float64)
        result = np.empty(room.shape)
        for pair in np.unique(pairs):
            own = np.flatnonzero(pairs == pair)
            result[own] = np.searchsorted(self.of_pairs[pair], room[own] / factor, side="right")
        return result / self.of_pairs.shape[1]

    def states_below(
        self, room: Float[np.ndarray, "n m"], states: Int[np.ndarray, " n"], factor: float
    ) -> Float[np.ndarray, "n m"]:
        """The same at each state, for the policy; after the end Z is 0."""
        result = (room >= 0).astype(np.float64)
        alive = np.flatnonzero(states < len(self.policy))
        result[alive] = 0.0
        for action in range(self.policy.shape[1]):
            share = self.policy[states[alive], action]
            taken = alive[share > 0]
            pairs = states[taken] * self.policy.shape[1] + action
            result[taken] += share[share > 0, None] * self.pairs_below(room[taken], pairs, factor)
        return result
