"""When episodes end: log-odds that are quadratic in where a step is predicted to go.

Most episodes end where the state reached says so: a pole has fallen, a height or a goal is reached. As a function of
the state and action before, that boundary has the dynamics in it, and a network that saw ten ends draws it broadly; as
one of the state that follows it is simple. The ridge of the fit is chosen by cross-validation over units. Where the
networks' own log-odds are better on held-out rows, they stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

RIDGES = tuple(10.0**-power for power in range(2, 8))
PARTS = 3
# Ended rows, rows that look like them, and others that stand for the rest: so many of each at most.
KEPT = 1_500
# With fewer ends than this among the held-out rows they cannot tell the two kinds of log-odds apart.
FEWEST_ENDS = 5
# More numbers in a state than this have no products in the log-odds, squares only.
MOST_CROSSED = 20
# Of more numbers than this, those that differ most between ended rows and others: Newton's steps take their cube.
MOST_NUMBERS = 60
MOST_STEPS, SMALLEST_GAIN = 30, 1e-6


class EndOdds(eqx.Module):
    """The log-odds of an end, for each network.

    Attributes:
        form: (…, s, s) of products of the predicted next state's numbers.
        linear: (…, s).
        constant: (…).
        own: (…) whether the network's own log-odds stand instead.
    """

    form: Float[Array | np.ndarray, "*j s s"]
    linear: Float[Array | np.ndarray, "*j s"]
    constant: Float[Array | np.ndarray, "*j"]
    own: Bool[Array | np.ndarray, "*j"]

    def __call__(self, following: Any, own: Any) -> Any:
        """Log-odds at predicted next states (n, s), with the network's own (n,)."""
        odds = ((following @ self.form) * following).sum(axis=1) + following @ self.linear + self.constant
        return jnp.where(self.own, own, odds)


def learn_ends(
    following: Float[np.ndarray, "n s"],
    ended: Bool[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
    units: Int[np.ndarray, " n"],
    own: Float[np.ndarray, " n"],
    held_out: Bool[np.ndarray, " n"],
    rng: np.random.Generator,
) -> EndOdds:
    """The log-odds of the networks of one fold.

    Args:
        following: the next states that they predict.
        ended: whether the episode ended there.
        weights: of the rows.
        units: what is left out together in cross-validation.
        own: the networks' own log-odds.
        held_out: rows that the networks did not learn from; the two kinds of log-odds are compared there.
        rng: for the parts, and for the rows that stand for many.
    """
    size, seen = following.shape[1], np.flatnonzero(~held_out)
    columns = _telling(following[seen], ended[seen])
    following = following[:, columns]
    rows, mass = _chosen(following[seen], ended[seen], weights[seen], rng)
    rows = seen[rows]
    basis = _Basis.of(following[rows])
    x, y = basis(following[rows]), ended[rows].astype(np.float64)
    part = rng.permutation(PARTS * (1 + int(units.max()) // PARTS + 1))[units[rows]] % PARTS
    losses = np.zeros(len(RIDGES))
    for number in range(PARTS):
        others, here = part != number, part == number
        if y[others].any() and here.any():
            fits = _path(x[others], y[others], mass[others], RIDGES)
            losses += [_loss(x[here] @ fit, y[here], mass[here]) for fit in fits]
    used = RIDGES[: 1 + int(np.argmin(losses))]
    theta = _path(x, y, mass, used)[-1]
    odds = _spread(basis.odds(theta, len(columns)), columns, size)
    if ended[held_out].sum() >= FEWEST_ENDS:
        unseen, count = ended[held_out].astype(np.float64), weights[held_out]
        fitted = basis(following[held_out]) @ theta
        if _loss(own[held_out], unseen, count) < _loss(fitted, unseen, count):
            return eqx.tree_at(lambda odds: odds.own, odds, np.array(True))
    return odds


def _telling(following: Float[np.ndarray, "n s"], ended: Bool[np.ndarray, " n"]) -> Int[np.ndarray, " c"]:
    """The numbers of the state to use: all, or those whose mean or mean square is most unlike at ends."""
    size = following.shape[1]
    if size <= MOST_NUMBERS or not ended.any() or ended.all():
        return np.arange(min(size, MOST_NUMBERS))
    unlike = np.zeros(size)
    for values in (following, following**2):
        spread = values.std(axis=0)
        apart = np.abs(values[ended].mean(axis=0) - values[~ended].mean(axis=0))
        unlike = np.maximum(unlike, apart / np.where(spread > 0, spread, np.inf))
    return np.sort(np.argsort(-unlike, kind="stable")[:MOST_NUMBERS])


def _spread(odds: EndOdds, columns: Int[np.ndarray, " c"], size: int) -> EndOdds:
    """The log-odds of some of a state's numbers as those of all."""
    form, linear = np.zeros((size, size), dtype=np.float32), np.zeros(size, dtype=np.float32)
    form[np.ix_(columns, columns)], linear[columns] = odds.form, odds.linear
    return EndOdds(form, linear, odds.constant, odds.own)


def stacked_odds(odds: Sequence[EndOdds], members: int) -> EndOdds:
    """Those of all folds, for each network of a fold the same."""
    return jax.tree.map(lambda *parts: np.repeat(np.stack(parts), members, axis=0), *odds)


class _Basis:
    """The numbers of a state, their products and a constant, each divided by its size."""

    def __init__(self, first: np.ndarray, second: np.ndarray, scale: np.ndarray) -> None:
        self._first, self._second, self._scale = first, second, scale

    @classmethod
    def of(cls, states: Float[np.ndarray, "n s"]) -> _Basis:
        size = states.shape[1]
        crossed = np.triu_indices(size) if size <= MOST_CROSSED else (np.arange(size), np.arange(size))
        raw = cls(*crossed, np.ones(size + len(crossed[0]) + 1))
        scale = np.sqrt(np.mean(raw(states) ** 2, axis=0))
        return cls(*crossed, np.where(scale > 0, scale, 1.0))

    def __call__(self, states: Float[np.ndarray, "n s"]) -> Float[np.ndarray, "n m"]:
        states = states.astype(np.float64)
        products = states[:, self._first] * states[:, self._second]
        return np.column_stack([states, products, np.ones(len(states))]) / self._scale

    def odds(self, theta: Float[np.ndarray, " m"], size: int) -> EndOdds:
        raw = theta / self._scale
        form = np.zeros((size, size))
        form[self._first, self._second] = raw[size:-1]
        form, linear, constant = (np.asarray(part, dtype=np.float32) for part in (form, raw[:size], raw[-1]))
        return EndOdds(form, linear, constant, np.array(False))


def _chosen(
    following: np.ndarray, ended: np.ndarray, weights: np.ndarray, rng: np.random.Generator
) -> tuple[Int[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """Rows to fit to and how many each stands for: most rows are far from any end, and a few can stand for them."""
    ends, others = np.flatnonzero(ended & (weights > 0)), np.flatnonzero(~ended & (weights > 0))
    first, mass = _sampled(ends, weights, rng)
    if len(others) <= 2 * KEPT:
        return np.concatenate([first, others]), np.concatenate([mass, weights[others]])
    some, some_mass = _sampled(others, weights, rng)
    basis = _Basis.of(following[some])
    x = basis(following[np.concatenate([first, some])])
    y = np.concatenate([np.ones(len(first)), np.zeros(len(some))])
    rough = _path(x, y, np.concatenate([mass, some_mass]), RIDGES[:2])[-1]
    alike = np.argsort(-(basis(following[others]) @ rough), kind="stable")
    near, rest = others[alike[:KEPT]], others[alike[KEPT:]]
    far, far_mass = _sampled(rest, weights, rng)
    return np.concatenate([first, near, far]), np.concatenate([mass, weights[near], far_mass])


def _sampled(rows: np.ndarray, weights: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Some of the rows, each with a part of the weight of all."""
    if len(rows) <= KEPT:
        return rows, weights[rows].astype(np.float64)
    drawn = rng.choice(rows, size=KEPT, replace=False)
    return drawn, weights[drawn] * (weights[rows].sum() / weights[drawn].sum())


def _path(
    x: Float[np.ndarray, "n m"], y: Float[np.ndarray, " n"], mass: Float[np.ndarray, " n"], ridges: Sequence[float]
) -> list[Float[np.ndarray, " m"]]:
    """Logistic fits, each ridge from the one before it by Newton's method; the constant has no ridge."""
    total = mass.sum()
    theta = np.zeros(x.shape[1])
    # Half an end is added, for parts without any: of a row that stands for no others, as the smallest does.
    half = 0.5 * mass.min()
    theta[-1] = np.log((y @ mass + half) / (total - y @ mass + half))
    found = []
    for ridge in ridges:
        penalty = np.full(len(theta), ridge * total)
        penalty[-1] = 1e-9 * total
        if y.any():
            theta = _newton(x, y, mass, penalty, theta)
        found.append(theta)
    return found


def _newton(x: np.ndarray, y: np.ndarray, mass: np.ndarray, penalty: np.ndarray, theta: np.ndarray) -> np.ndarray:
    def objective(theta: np.ndarray) -> float:
        return _loss(x @ theta, y, mass) + 0.5 * float(penalty @ theta**2)

    least = objective(theta)
    for _ in range(MOST_STEPS):
        chance = expit(x @ theta)
        gradient = x.T @ (mass * (chance - y)) + penalty * theta
        curvature = (x.T * (mass * chance * (1 - chance))) @ x + np.diag(penalty)
        move, length = cho_solve(cho_factor(curvature), gradient), 1.0
        while (reached := objective(theta - length * move)) > least and length > 1e-4:
            length /= 2
        if reached >= least:
            break
        gain, theta, least = least - reached, theta - length * move, reached
        if gain < SMALLEST_GAIN * abs(least):
            break
    return theta


def _loss(odds: np.ndarray, y: np.ndarray, mass: np.ndarray) -> float:
    """The cross-entropy, summed."""
    return float(mass @ (np.logaddexp(0.0, odds) - y * odds))
