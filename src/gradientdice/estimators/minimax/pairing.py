"""Two function classes on one log: u for the weights of rows, g for the functions that they are tested with.

With δ = g − γḡ' the change of g along a transition, all that a linear minimax estimator needs is

    F = E[δ uᵀ],   v = E[u],   c = E[u r],   b = E_μ0[ḡ].

A weight u·w conserves the flow of every g if Fw = (1−γ)b; a g·θ solves the Bellman equation as tested by every u if
Fᵀθ = c. The absorbing state and, at discount 1, restarts are as in `Moments`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradientdice.base.errors import require_finite, starts_missing
from gradientdice.functions import LinearFunctions
from gradientdice.functions.rows import Rows, cross_product
from gradientdice.problem.absorbing import loop_weight
from gradientdice.problem.design import self_loop
from gradientdice.problem.entrance import require_functions
from gradientdice.problem.logged import require_logged
from gradientdice.problem.moments import mean_start, weighted_sum
from gradientdice.problem.problem import Problem
from gradientdice.problem.stream import LogDesign
from gradientdice.statistics.influence import Influence, centred_shares


@dataclass(frozen=True, eq=False)
class Pairing:
    """The moments of two function classes on one log.

    Attributes:
        ratio: the log as rows of u.
        critic: the log as rows of g.
        discount: γ.
        flow: F, (Kg, Ku).
        mean: v, (Ku,).
        reward: c, (Ku,).
        initial: b, (Kg,); None if the log has no initial states.
        ratio_gram: E[u uᵀ].
        critic_gram: E[g gᵀ].
        critic_mean: E[g].
        ended: E[1{ended} u].
        weight: the total weight, that of the absorbing state's own row included.
        restarts: whether ended episodes restart.
    """

    ratio: LogDesign
    critic: LogDesign
    discount: float
    flow: Float[np.ndarray, "Kg Ku"]
    mean: Float[np.ndarray, " Ku"]
    reward: Float[np.ndarray, " Ku"]
    initial: Float[np.ndarray, " Kg"] | None
    ratio_gram: Float[np.ndarray, "Ku Ku"]
    critic_gram: Float[np.ndarray, "Kg Kg"]
    critic_mean: Float[np.ndarray, " Kg"]
    ended: Float[np.ndarray, " Ku"]
    weight: float
    restarts: bool

    @classmethod
    def create(
        cls,
        problem: Problem,
        discount: float,
        *,
        ratio: LinearFunctions | None = None,
        critic: LinearFunctions | None = None,
    ) -> Pairing:
        """One pass over a log; a function class that is left out is the problem's own."""
        require_functions(ratio)
        require_functions(critic)
        us, gs = _rows(problem, ratio), _rows(problem, critic)
        sums = _Sums.create(us, gs)
        restarts = us.absorbing and discount == 1
        b = mean_start(gs)
        if b is None and (discount < 1 or restarts):
            raise starts_missing(discount)
        own = slice(0, gs.first.width - gs.first.absorbing)
        reached = np.abs(sums.next_cross).sum(axis=1) + (0.0 if b is None else np.abs(b))
        require_logged(gs.functions, np.diag(sums.critic_gram)[own], reached[own])
        if restarts:
            assert b is not None
            sums, b = sums.restarted(b), b[:-1]
        elif us.absorbing:
            sums = sums.absorbed(us, gs)
        scale = 1 / sums.weight
        made = cls(
            us,
            gs,
            discount,
            scale * (sums.cross - discount * sums.next_cross),
            scale * sums.mean,
            scale * sums.reward,
            b,
            scale * sums.ratio_gram,
            scale * sums.critic_gram,
            scale * sums.critic_mean,
            scale * sums.ended,
            sums.weight,
            restarts,
        )
        for name in ("flow", "mean", "reward"):
            require_finite(f"the features' moments ({name})", getattr(made, name))
        return made

    @property
    def start(self) -> Float[np.ndarray, " Kg"]:
        """(1−γ)b, which at discount 1 is 0."""
        return np.zeros(len(self.flow)) if self.initial is None else (1 - self.discount) * self.initial

    @property
    def absorbing(self) -> bool:
        """Whether the last features are those of the absorbing state."""
        return self.ratio.first.absorbing and not self.restarts

    @property
    def row_share(self) -> float:
        """The log's own share of the weight: the rest is the absorbing state's."""
        return float(self._weights.sum()) / self.weight

    @property
    def _weights(self) -> np.ndarray:
        data = self.ratio.data
        return data.row_weights

    def over_rows(
        self, ratio_params: Float[np.ndarray, "Ku a"], critic_params: Float[np.ndarray, "Kg b"]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """u·ratio_params, g·critic_params and δ·critic_params at each row: (n, a), (n, b), (n, b)."""
        n = len(self.ratio.data)
        again = None
        if self.restarts:
            assert self.initial is not None
            again = self.initial @ critic_params
            ratio_params, critic_params = (np.vstack([p, np.zeros(p.shape[1])]) for p in (ratio_params, critic_params))
        weights = np.empty((n, ratio_params.shape[1]))
        values, changes = np.empty((2, n, critic_params.shape[1]))
        for (rows, first), (_, second) in zip(self.ratio.chunks(), self.critic.chunks(), strict=True):
            weights[rows] = first.current.predict(ratio_params)
            values[rows] = second.current.predict(critic_params)
            following = np.array(second.following.predict(critic_params))
            if again is not None:
                following[second.ended] = again
            changes[rows] = values[rows] - self.discount * following
        return weights, values, changes

    def shares(
        self,
        raw: Float[np.ndarray, " n"],
        direction: Float[np.ndarray, " Kg"],
        ratio: Float[np.ndarray, " n"],
        residual: Float[np.ndarray, " n"],
    ) -> Influence:
        """Influence values as shares of the error.

        Args:
            raw: the rows' influence values, up to a constant.
            direction: by how much the value moves with b.
            ratio: τ at each row.
            residual: r + γV' − Q at each row.
        """
        weights, rows = self._weights, self.critic.initial
        own = weights * (raw - np.average(raw, weights=weights)) / self.weight
        initial = None
        if rows is not None and (self.discount < 1 or self.restarts):
            padded = np.append(direction, 0.0) if self.restarts else direction
            values = np.asarray(rows.predict(padded[:, None]))[:, 0]
            initial = centred_shares(values, self.critic.initial_weights)
        return Influence(own, initial, ratio, residual)


def _rows(problem: Problem, functions: LinearFunctions | None) -> LogDesign:
    """The feature rows of the problem's own functions, or of others on the same log and policy."""
    own = problem.rows
    if functions is None or functions == problem.functions:
        return own
    return LogDesign(own.data, own.policy, functions, seed=problem.seed)


@dataclass(frozen=True, eq=False)
class _Sums:
    """Weighted sums over the rows: of g uᵀ, ḡ' uᵀ and the rest."""

    cross: np.ndarray
    next_cross: np.ndarray
    mean: np.ndarray
    reward: np.ndarray
    ratio_gram: np.ndarray
    critic_gram: np.ndarray
    critic_mean: np.ndarray
    ended: np.ndarray
    weight: float

    @classmethod
    def create(cls, us: LogDesign, gs: LogDesign) -> _Sums:
        total: list[np.ndarray] | None = None
        same = us is gs
        for (_, u), (_, g) in zip(us.chunks(), gs.chunks(), strict=True):
            m = u.weights
            cross = cross_product(g.current, u.current, m, g.width, u.width)
            mean = weighted_sum(u.current, m, u.width)
            part = [
                cross,
                cross_product(g.following, u.current, m, g.width, u.width),
                mean,
                weighted_sum(u.current, m * u.rewards, u.width),
                cross if same else cross_product(u.current, u.current, m, u.width),
                cross if same else cross_product(g.current, g.current, m, g.width),
                mean if same else weighted_sum(g.current, m, g.width),
                weighted_sum(u.current, m * u.ended, u.width),
            ]
            total = part if total is None else [mine + theirs for mine, theirs in zip(total, part, strict=True)]
        assert total is not None
        weights = us.data.weights
        return cls(*total, weight=float(len(us.data) if weights is None else weights.sum()))

    def absorbed(self, us: LogDesign, gs: LogDesign) -> _Sums:
        """With the absorbing state's own row, from which nothing leads away and where no reward falls."""
        weight = loop_weight(self.weight)
        u, g = (_only(self_loop(log.first), log.first.width) for log in (us, gs))
        return _Sums(
            self.cross + weight * np.outer(g, u),
            self.next_cross + weight * np.outer(g, u),
            self.mean + weight * u,
            self.reward,
            self.ratio_gram + weight * np.outer(u, u),
            self.critic_gram + weight * np.outer(g, g),
            self.critic_mean + weight * g,
            self.ended,
            self.weight + weight,
        )

    def restarted(self, initial: np.ndarray) -> _Sums:
        """Without the absorbing state: what it would have caught goes to an initial state."""
        return _Sums(
            self.cross[:-1, :-1],
            self.next_cross[:-1, :-1] + np.outer(initial[:-1], self.ended[:-1]),
            self.mean[:-1],
            self.reward[:-1],
            self.ratio_gram[:-1, :-1],
            self.critic_gram[:-1, :-1],
            self.critic_mean[:-1],
            self.ended[:-1],
            self.weight,
        )


def _only(row: Rows, width: int) -> np.ndarray:
    """A single row as a vector. A sparse row may name one column several times: it is an indicator all the same."""
    matrix = row.matrix(width)
    dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    return (dense[0] != 0).astype(np.float64)
