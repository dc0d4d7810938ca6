"""The flow of a state ratio c(s) through a log, which the estimators that know the behaviour share.

With β = π(a|s)/μ(a|s), functions φ and test functions ψ of the state, the ratio c = d_π/d over the logged states solves

    E[c(s) ψ(s)] = γ E[β c(s) ψ(s')] + (1−γ) E_start[ψ]   for every ψ,   and the value is   E[β c(s) r].

The first term is at the logged states s. COP-TD, GEM and BCH are published with it at the next states s', which is the
same where the log is a stationary stretch of the behaviour's chain (each next state is the next row's state, so that
the two sums differ by the trajectories' two ends) and wrong elsewhere: at the states it is right for any log.

With c = φᵀθ this is Mθ = h with M = E[(ψ − γβψ')φᵀ]. A terminated row leads to an absorbing state with a function of
its own; at γ = 1 it leads to an initial state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from gradientdice.base.errors import InputError, require_finite, starts_missing
from gradientdice.functions.rows import as_dense
from gradientdice.functions.tabular import LoggedTable, Tabular
from gradientdice.problem.absorbing import loop_weight
from gradientdice.problem.design import Design
from gradientdice.problem.moments import mean_start
from gradientdice.problem.stream import LogDesign
from gradientdice.statistics.influence import Influence, centred_shares


class StateFit(NamedTuple):
    """θ, and the adjoints with which a perturbation of the equations reaches the value.

    A row moves the value by −[(φᵀθ)(δᵀp) + (φᵀq)(δᵀe) + φᵀm] with δ = ψ − γβψ', beside its own part in the value.

    Attributes:
        params: θ.
        tests: p, over the test functions: the matching V-function.
        ratio: q, over the functions; None where the equations hold exactly.
        residual: e = Mθ − h; None where the equations hold exactly.
        mean: m, for what a row adds to the mean of the functions.
    """

    params: np.ndarray
    tests: np.ndarray
    mean: np.ndarray
    ratio: np.ndarray | None = None
    residual: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class StateFlow:
    """Moments of a log of states. Means are over the rows; the absorbing state's loop counts as one more.

    Attributes:
        log: the functions' rows φ.
        test_log: the test functions' rows ψ: the same if they are the same.
        importance: (n,) β.
        discount: γ.
        gram: E[φφᵀ].
        cross: E[ψφᵀ].
        flow: E[βψ'φᵀ].
        mean: E[φ].
        logged: E[ψ] over the rows alone.
        mass: E[βφ].
        reward: E[βφr].
        initial: E_μ0[ψ]; None if the log has no initial states.
        ended: E[βφ 1{ended}], which at discount 1 restarts.
    """

    log: LogDesign
    test_log: LogDesign
    importance: Float[np.ndarray, " n"]
    discount: float
    gram: Float[np.ndarray, "K K"]
    cross: Float[np.ndarray, "T K"]
    flow: Float[np.ndarray, "T K"]
    mean: Float[np.ndarray, " K"]
    logged: Float[np.ndarray, " T"]
    mass: Float[np.ndarray, " K"]
    reward: Float[np.ndarray, " K"]
    initial: Float[np.ndarray, " T"] | None
    ended: Float[np.ndarray, " K"]

    @classmethod
    def of(
        cls,
        log: LogDesign,
        importance: Float[np.ndarray, " n"],
        discount: float,
        *,
        tests: LogDesign | None = None,
        from_initial: bool = True,
    ) -> StateFlow:
        """One pass over a log.

        Args:
            log: the functions' rows.
            importance: β of each row.
            discount: γ.
            tests: the test functions' rows; the functions' own if left out.
            from_initial: whether the chain starts from the log's initial states.

        Raises:
            InputError: if initial states are missing, or the log has no row in a state that the policy reaches.
        """
        if not importance.any():
            raise InputError("The policy takes none of the logged actions: the log says nothing about it.")
        test_log = log if tests is None else tests
        weights = _weights(log)
        total = float(weights.sum())
        sums = None
        for rows, functions, others in _chunks(log, test_log):
            share, beta = weights[rows] / total, importance[rows]
            part = _sums(functions, others, share, share * beta)
            sums = part if sums is None else [mine + theirs for mine, theirs in zip(sums, part, strict=True)]
        assert sums is not None
        gram, cross, flow, mean, logged, mass, reward, ended = sums
        if log.absorbing:
            loop = loop_weight(1.0)
            for matrix in (gram, cross, flow):
                matrix[-1, -1] += loop
            for vector in (mean, mass):
                vector[-1] += loop
        initial = mean_start(test_log)
        if log.absorbing and discount == 1:
            if initial is None:
                raise starts_missing(discount)
            gram, cross, flow = gram[:-1, :-1], cross[:-1, :-1], flow[:-1, :-1] + np.outer(initial[:-1], ended[:-1])
            mean, logged, mass, reward, ended = mean[:-1], logged[:-1], mass[:-1], reward[:-1], ended[:-1]
            initial = initial[:-1]
        if discount < 1 and from_initial and initial is None:
            raise starts_missing(discount)
        made = cls(log, test_log, importance, discount, gram, cross, flow, mean, logged, mass, reward, initial, ended)
        for moment in (gram, cross, flow, mass, reward):
            require_finite("The log's mean of importance ratio × features (or rewards)", moment)
        if tests is None:
            made._require_logged(from_initial)
        return made

    @property
    def balance(self) -> Float[np.ndarray, "T K"]:
        """M = E[(ψ − γβψ')φᵀ]."""
        return self.cross - self.discount * self.flow

    @property
    def start(self) -> Float[np.ndarray, " T"]:
        """(1−γ) E_μ0[ψ]."""
        return np.zeros(len(self.cross)) if self.discount == 1 else (1 - self.discount) * self._initial

    @property
    def restarts(self) -> bool:
        """Whether ended episodes go on from an initial state, and the absorbing state is no part of the problem."""
        return self.discount == 1 and self.log.absorbing

    @property
    def _initial(self) -> np.ndarray:
        assert self.initial is not None
        return self.initial

    @property
    def weights(self) -> Float[np.ndarray, " n"]:
        """How often each row counts."""
        return _weights(self.log)

    def tolerance(self, given: float | None) -> float:
        """The rank tolerance given, else the function class's."""
        return self.log.functions.rank_tolerance if given is None else given

    def value(self, params: Float[np.ndarray, " K"], *, normalised: bool) -> tuple[float, float]:
        """E[βcr], divided by E[βc] if normalised; and E[βc], the absorbing state included."""
        mass = float(self.mass @ params)
        if normalised and mass == 0:
            raise InputError("The ratio that was found is 0 wherever the policy goes: there is nothing to average.")
        return float(self.reward @ params) / (mass if normalised else 1.0), mass

    def gradient(self, params: Float[np.ndarray, " K"], *, normalised: bool) -> Float[np.ndarray, " K"]:
        """The value's derivative with respect to θ."""
        value, mass = self.value(params, normalised=normalised)
        return (self.reward - value * self.mass) / mass if normalised else self.reward

    def ratio(self, params: Float[np.ndarray, " K"]) -> Float[np.ndarray, " n"]:
        """c(s) in each row."""
        padded = self._padded(params)
        return np.concatenate([design.current.predict(padded[:, None])[:, 0] for _, design in self.log.chunks()])

    def shares(self, fit: StateFit, *, normalised: bool, from_initial: bool = True) -> Influence:
        """Each observation's share in the value's error."""
        value, mass = self.value(fit.params, normalised=normalised)
        scale, offset = (mass, value) if normalised else (1.0, 0.0)
        ratio_adjoint = np.zeros_like(fit.params) if fit.ratio is None else fit.ratio
        residual_adjoint = np.zeros_like(fit.tests) if fit.residual is None else fit.residual
        over_functions = self._padded(np.column_stack([fit.params, ratio_adjoint, fit.mean]))
        over_tests = self._padded(np.column_stack([fit.tests, residual_adjoint]))
        n = len(self.log.data)
        raw, ratio, residual = np.empty(n), np.empty(n), np.empty(n)
        for rows, functions, others in _chunks(self.log, self.test_log):
            beta = self.importance[rows]
            c, q, m = functions.current.predict(over_functions).T
            here, following = others.current.predict(over_tests), np.array(others.following.predict(over_tests))
            if self.restarts:
                following[functions.ended] = self._initial @ over_tests[:-1]
            delta = here - self.discount * beta[:, None] * following
            own = beta * c * (functions.rewards - offset) / scale
            raw[rows] = own - c * delta[:, 0] - q * delta[:, 1] - m
            ratio[rows] = beta * c / scale
            residual[rows] = functions.rewards - offset + scale * (self.discount * following[:, 0] - here[:, 0])
        weights = self.weights
        shares = weights * (raw - np.average(raw, weights=weights)) / weights.sum()
        initial = None
        if self.restarts or (self.discount < 1 and from_initial):
            direction = (1 - self.discount) * fit.tests
            if self.restarts:
                direction = fit.tests * (self.ended @ fit.params) + residual_adjoint * (self.ended @ ratio_adjoint)
            assert self.test_log.initial is not None
            values = np.asarray(self.test_log.initial.predict(self._padded(direction[:, None])))[:, 0]
            initial = centred_shares(values, self.test_log.initial_weights)
        return Influence(shares, initial, ratio, residual)

    def _padded(self, params: np.ndarray) -> np.ndarray:
        """Parameters for rows that have the absorbing state's column even where it is no part of the problem."""
        return np.concatenate([params, np.zeros((1, *params.shape[1:]))]) if self.restarts else params

    def _require_logged(self, from_initial: bool) -> None:
        """An error that names the first state or feature that the policy reaches and the log does not contain."""
        reached = self.discount * np.abs(self.flow).sum(axis=1)
        if self.discount < 1 and from_initial:
            reached = reached + np.abs(self._initial)
        unlogged = np.flatnonzero((np.diag(self.gram) <= 0) & (reached > 0))
        if len(unlogged):
            tabular = isinstance(self.log.functions, (Tabular, LoggedTable))
            raise InputError(
                f"The policy reaches {'state' if tabular else 'feature'} {unlogged[0]}, of which the log has no row "
                f"({len(unlogged)} such): nothing is known of what happens there. Log more data, or use features that "
                "generalise."
            )


def _chunks(log: LogDesign, tests: LogDesign) -> Iterator[tuple[slice, Design, Design]]:
    if tests is log:
        yield from ((rows, design, design) for rows, design in log.chunks())
    else:
        for (rows, functions), (_, others) in zip(log.chunks(), tests.chunks(), strict=True):
            yield rows, functions, others


def _weights(log: LogDesign) -> np.ndarray:
    return log.data.row_weights


def _sums(functions: Design, others: Design, share: np.ndarray, weighted: np.ndarray) -> list[np.ndarray]:
    """A chunk's part of each moment, in the order of the pass; `weighted` is the rows' share times β."""
    phi, psi = functions.current.matrix(functions.width), others.current.matrix(others.width)
    following = others.following.matrix(others.width)
    flowing = phi * weighted[:, None]
    logged = phi * share[:, None]
    gram = as_dense(phi.T @ logged)
    return [
        gram,
        gram.copy() if functions is others else as_dense(psi.T @ logged),
        as_dense(following.T @ flowing),
        np.asarray(phi.T @ share),
        np.asarray(psi.T @ share),
        np.asarray(phi.T @ weighted),
        np.asarray(phi.T @ (weighted * functions.rewards)),
        np.asarray(phi.T @ (weighted * functions.ended)),
    ]
