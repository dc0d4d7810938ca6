"""GradientDICE's closed form for many weightings of a log at once, with given features.

The moments C, B, v, b and c are sums over units, so that those of a batch of weightings are one matrix product of the
weights with the units' own moments. With A = C − γB and the penalty λ = 1 of E[τ] = 1,

    (AᵀC⁻¹A + λvvᵀ) w = (1−γ) AᵀC⁻¹b + λv,      ρ = wᵀc,

in a basis in which the whole log's C is the identity, so that the systems of all draws are well conditioned. Directions
that the whole log does not show are dropped, as the closed form does. With a constant among the features the flow
equations Aw = (1−γ)b, vᵀw = 1 have a solution, which is then GradientDICE's: A alone is needed, and one solve.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradientdice.base.errors import starts_missing
from gradientdice.dice.closed_form import whitening
from gradientdice.problem.absorbing import loop_weight
from gradientdice.problem.problem import Problem
from gradientdice.statistics.posterior.units import Drawn, GammaWeights

# λ, as GradientDICE's own default; with a constant among the features any λ gives the same value.
NORM_PENALTY = 1.0
# By how much the squared length of the constant's projection on the features may differ from 1.
CONSTANT = 1e-9


@dataclass(frozen=True, eq=False)
class FeatureDraws:
    """The moments of each unit, ready to be weighted.

    Attributes:
        discount: γ.
        bellman: (u, r²) of (x − γx̄') xᵀ.
        gram: (u, r²) of x xᵀ; None where the constant is among the features, which makes it unnecessary.
        mean: (u, r) of x.
        reward: (u, r) of x r.
        weight: (u,) the units' weights.
        ended: (u, r) of x at ends; None if nothing ended.
        starts: (u or m, r + 1) of x̄0 and of the weights of starts; None without any.
        own_starts: whether the starts are the units' own, and not given beside the log.
        loop: (r,) the absorbing state's feature in the basis; None if nothing ended.
    """

    discount: float
    bellman: Float[np.ndarray, "u rr"]
    gram: Float[np.ndarray, "u rr"] | None
    mean: Float[np.ndarray, "u r"]
    reward: Float[np.ndarray, "u r"]
    weight: Float[np.ndarray, " u"]
    ended: Float[np.ndarray, "u r"] | None
    starts: Float[np.ndarray, "m r1"] | None
    own_starts: bool
    loop: Float[np.ndarray, " r"] | None

    @classmethod
    def of(cls, problem: Problem, discount: float) -> FeatureDraws:
        """The moments of the units of a problem with linear functions."""
        log, data = problem.rows, problem.data
        whole = problem.moments.for_discount(discount)
        absorbing = log.absorbing
        basis = whitening(whole.gram, whole.rank_tolerance)
        # At discount 1 ended episodes restart, and there is no absorbing state.
        restart = absorbing and discount == 1
        if restart:
            basis = np.vstack([basis, np.zeros(basis.shape[1])])
        size, count = basis.shape[1], data.units.count
        shown = basis[: whole.num_features].T @ whole.mean
        # In this basis the constant's part in the span of the features has the length of E[x].
        has_constant = abs(float(shown @ shown) - 1) < CONSTANT
        bellman = np.zeros((count, size * size))
        gram = None if has_constant else np.zeros((count, size * size))
        mean, reward, ended = (np.zeros((count, size)) for _ in range(3))
        weight = np.zeros(count)
        for rows, design in log.chunks():
            current = np.asarray(design.current.predict(basis))
            following = np.asarray(design.following.predict(basis))
            units, weights = data.units.rows[rows], design.weights
            order = np.argsort(units, kind="stable")
            order = order[units[order] >= 0]
            present, begin = np.unique(units[order], return_index=True)
            for unit, own in zip(present, np.split(order, begin[1:]), strict=True):
                x, after = current[own] * weights[own, None], following[own]
                bellman[unit] += ((current[own] - discount * after).T @ x).ravel()
                if gram is not None:
                    gram[unit] += (current[own].T @ x).ravel()
                mean[unit] += x.sum(axis=0)
                reward[unit] += design.rewards[own] @ x
                ended[unit] += design.ended[own] @ x
                weight[unit] += weights[own].sum()
        loop = basis[-1] if absorbing and not restart else None
        starts, own_starts = _starts(problem, basis)
        if starts is None and (discount < 1 or restart):
            raise starts_missing(discount)
        return cls(discount, bellman, gram, mean, reward, weight, ended if restart else None, starts, own_starts, loop)

    @property
    def weights(self) -> GammaWeights:
        """The weights to be drawn."""
        starts = None if self.starts is None or self.own_starts else np.ones(len(self.starts))
        return GammaWeights(np.ones(len(self.weight)), starts)

    def values(self, drawn: Drawn) -> Float[np.ndarray, " b"]:
        """ρ of each draw."""
        size = self.mean.shape[1]
        total = drawn.rows @ self.weight
        loop = np.zeros(len(total)) if self.loop is None else loop_weight(1.0) * total
        total = total + loop
        bellman, mean, reward = (drawn.rows @ part / total[:, None] for part in (self.bellman, self.mean, self.reward))
        gram = None if self.gram is None else drawn.rows @ self.gram / total[:, None]
        if self.loop is not None:
            share = (loop / total)[:, None]
            own = np.outer(self.loop, self.loop).ravel()
            bellman, mean = bellman + (1 - self.discount) * share * own, mean + share * self.loop
            gram = None if gram is None else gram + share * own
        start = None
        if self.starts is not None:
            of_starts = drawn.rows if drawn.starts is None else drawn.starts
            start = of_starts @ self.starts
            start = start[:, :-1] / start[:, -1:]
        bellman = bellman.reshape(-1, size, size)
        if self.ended is not None:
            assert start is not None
            over = drawn.rows @ self.ended / total[:, None]
            bellman = bellman - start[:, :, None] * over[:, None, :]
        begin = np.zeros_like(mean) if start is None else (1 - self.discount) * start
        if gram is None:
            ratio = _flow_ratio(bellman, mean, begin)
        else:
            ratio = _saddle_ratio(gram.reshape(-1, size, size), bellman, mean, begin)
        return np.sum(ratio * reward, axis=1)


def _flow_ratio(
    bellman: Float[np.ndarray, "b r r"], mean: Float[np.ndarray, "b r"], begin: Float[np.ndarray, "b r"]
) -> Float[np.ndarray, "b r"]:
    """The solution w of Aw + ηv = (1−γ)b, vᵀw = 1; η is 0 where the flow equations can be solved."""
    count, size = mean.shape
    system = np.zeros((count, size + 1, size + 1))
    system[:, :-1, :-1], system[:, :-1, -1], system[:, -1, :-1] = bellman, mean, mean
    right = np.concatenate([begin, np.ones((count, 1))], axis=1)
    return np.linalg.solve(system, right[..., None])[:, :-1, 0]


def _saddle_ratio(
    gram: Float[np.ndarray, "b r r"],
    bellman: Float[np.ndarray, "b r r"],
    mean: Float[np.ndarray, "b r"],
    begin: Float[np.ndarray, "b r"],
) -> Float[np.ndarray, "b r"]:
    """GradientDICE's w."""
    adjoint = np.swapaxes(np.linalg.solve(gram, bellman), 1, 2)
    matrix = adjoint @ bellman + NORM_PENALTY * mean[:, :, None] * mean[:, None, :]
    right = (adjoint @ begin[..., None])[..., 0] + NORM_PENALTY * mean
    return np.linalg.solve(matrix, right[..., None])[..., 0]


def _starts(problem: Problem, basis: np.ndarray) -> tuple[np.ndarray | None, bool]:
    """x̄0 and weights of the starts: of each unit if they are the episodes' own, else of each start."""
    log, data = problem.rows, problem.data
    if log.initial is None:
        return None, False
    weights = log.initial_weights
    rows = np.asarray(log.initial.predict(basis)) * weights[:, None]
    rows = np.column_stack([rows, weights])
    if data.initial_states is not None:
        return rows, False
    own = np.column_stack([data.units.sums(column, data.first_rows) for column in rows.T])
    return own, True
