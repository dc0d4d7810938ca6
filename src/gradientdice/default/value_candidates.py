"""Candidates for Q at rows that they were not fitted to, and convex combinations of them.

The doubly robust error is the noise of τ̂ e, e = r + γV' − Q, and the product of τ̂'s error with e's mean. A combination
Σ_j w_j Q_j, w ≥ 0, Σw = 1, has e = Σ_j w_j e_j, so that

    wᵀ (E[τ̂² e eᵀ]/n + S² K) w,     wᵀKw = the kernel Bellman loss,

is the sum of the two, both quadratic in w. S is the size that τ̂'s error is taken to have. The noise of the sampled
starts is left out: a Q that varies less than it should would make it smaller, and wrong. The weights used on a fold are
those that are best on the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Float
from scipy.optimize import nnls

from gradientdice.default.ridge_scores import RidgeScores
from gradientdice.log.transitions import Transitions
from gradientdice.problem.folds import Folds
from gradientdice.statistics.bellman import BellmanForms
from gradientdice.statistics.influence import HeldOut, HeldOutQ

# S. On logs of 2,000 rows of pendulum, CartPole, MountainCar and linear systems 5 has smaller errors than 1.5 or 30.
RATIO_ERROR = 5.0
# The names of the Qs of a learned model, and of fitted Q evaluation.
MODEL, FITTED = "the model's", "fitted Q evaluation's"
# The largest share of Q's variance that its residual may have if the Q is to answer alone.
UNEXPLAINED = 0.5
# In a search for convex weights, the weight of the equation of their sum against the quadratic form.
SUM_WEIGHT = 1e4
# A candidate so many times worse than the best has a share of one in as many, and would cost the others their digits.
HOPELESS = 1e6


class SimulatedValues(Protocol):
    """A learned model's Qs, values and doubts for a log."""

    @property
    def by_discount(self) -> Sequence[Sequence[HeldOutQ]]:
        """Several Qs with their Vs for each discount."""
        ...

    @property
    def values(self) -> Sequence[float]:
        """For each discount the policy's value in the model."""
        ...

    @property
    def spreads(self) -> Sequence[float]:
        """For each discount the standard deviation of that value over the networks."""
        ...

    @property
    def left_share(self) -> float:
        """The share of simulated steps that would have left the log's range."""
        ...

    @property
    def lasting(self) -> Sequence[float]:
        """For each discount the discounted share of the policy's time before an end."""
        ...

    def notes(self, number: int) -> tuple[str, ...]:
        """Notes for the reader at one of the discounts."""
        ...


@dataclass(frozen=True)
class OwnValue:
    """A model's own answer at one discount.

    Attributes:
        value: the policy's value in the model.
        spread: its standard deviation over the networks.
        left_share: the share of simulated steps that would have left the log's range.
        lasting: the discounted share of the policy's time before an end.
    """

    value: float
    spread: float
    left_share: float
    lasting: float

    @classmethod
    def of(cls, model: SimulatedValues, number: int) -> OwnValue:
        """A model's own answer at one of its discounts."""
        return cls(model.values[number], model.spreads[number], model.left_share, model.lasting[number])


@dataclass(frozen=True, eq=False)
class ValueCandidates:
    """Bellman residuals and start values of several Qs.

    Attributes:
        discount: γ.
        names: what kind each candidate is, in words.
        residual: r + γV' − Q, at discount 1 less the candidate's own value, so that 0 is right for each.
        norm: what was taken off at discount 1, else 0.
        initial_value: V at the initial states; None if they play no part.
        simulated: those of a model that explains most of its own Q: its residual varies less than half as much.
        fitted: that of fitted Q evaluation, if it does.
    """

    discount: float
    names: tuple[str, ...]
    residual: Float[np.ndarray, "J n"]
    norm: Float[np.ndarray, "J n"]
    initial_value: Float[np.ndarray, "J n0"] | None
    simulated: tuple[int, ...] = ()
    fitted: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        data: Transitions,
        folds: Folds,
        kernel: RidgeScores,
        models: Sequence[HeldOutQ] = (),
        fitted: HeldOutQ | None = None,
    ) -> ValueCandidates:
        """The kernel's Q of each ridge, those of a model if there is one, a fitted one likewise, and 0, last."""
        gamma, starts = kernel.discount, kernel.initial_value
        names = ["the kernel's"] * len(kernel.ridges)
        norm = kernel.norm if gamma == 1 else np.zeros_like(kernel.norm)
        residuals, norms, initial = [*kernel.residual], [*norm], [] if starts is None else [*starts]
        credible: dict[str, list[int]] = {MODEL: [], FITTED: []}
        learned = [*((MODEL, model) for model in models), *([] if fitted is None else [(FITTED, fitted)])]
        for name, model in learned:
            residual = data.rewards + gamma * model.next_value - model.q
            if _variance(residual, data) <= UNEXPLAINED * _variance(model.q, data):
                credible[name].append(len(names))
            names.append(name)
            _add(residuals, norms, _centred(residual, data, folds, gamma))
            if starts is not None:
                assert model.initial_value is not None
                initial.append(model.initial_value)
        names.append("0")
        _add(residuals, norms, _centred(data.rewards.astype(np.float64), data, folds, gamma))
        if starts is not None:
            initial.append(np.zeros(starts.shape[1]))
        return cls(
            gamma,
            tuple(names),
            np.array(residuals),
            np.array(norms),
            None if starts is None else np.array(initial),
            tuple(credible[MODEL]),
            tuple(credible[FITTED]),
        )

    def combined(
        self,
        data: Transitions,
        folds: Folds,
        ratio: Float[np.ndarray, " n"],
        weights: Float[np.ndarray, "folds J"],
    ) -> HeldOut:
        """τ with a combination: each fold's rows have the fold's own weights."""
        by_row, by_start = weights[folds.rows].T, weights[folds.initial].T
        initial = None if self.initial_value is None else np.sum(by_start * self.initial_value, axis=0)
        residual, norm = np.sum(by_row * self.residual, axis=0), np.sum(by_row * self.norm, axis=0)
        return self._scores(data, ratio, residual, norm, initial)

    def alone(self, data: Transitions, ratio: Float[np.ndarray, " n"], number: int) -> HeldOut:
        """τ with one of the candidates."""
        initial = None if self.initial_value is None else self.initial_value[number]
        return self._scores(data, ratio, self.residual[number], self.norm[number], initial)

    @property
    def modelled(self) -> tuple[int, ...]:
        """True for the candidates of a model, even one that does not explain its own Q."""
        return tuple(number for number, name in enumerate(self.names) if name == MODEL)

    @property
    def others(self) -> list[int]:
        """True for the candidates that are no network's."""
        return [number for number, name in enumerate(self.names) if name not in (MODEL, FITTED)]

    def shares(self, weights: Float[np.ndarray, "folds J"]) -> dict[str, float]:
        """The weight of each kind of candidate, the mean over folds."""
        means = weights.mean(axis=0)
        kinds = dict.fromkeys(name for name, mean in zip(self.names, means, strict=True) if mean > 0)
        return {
            name: float(sum(mean for own, mean in zip(self.names, means, strict=True) if own == name)) for name in kinds
        }

    def _scores(
        self, data: Transitions, ratio: np.ndarray, residual: np.ndarray, norm: np.ndarray, initial: np.ndarray | None
    ) -> HeldOut:
        ended = data.terminated if initial is not None and self.discount == 1 else None
        return HeldOut(ratio, residual, norm, initial, ended)


def best_weights(
    candidates: ValueCandidates,
    data: Transitions,
    folds: Folds,
    mass: Float[np.ndarray, " n"],
    forms: BellmanForms,
    among: Sequence[int] | None = None,
) -> Float[np.ndarray, "folds J"]:
    """Convex weights for each fold, those that are best on the other folds.

    Args:
        candidates: the Qs.
        data: the log.
        folds: of its rows and initial states.
        mass: τ̂ of each row as a ratio to the rows alone.
        forms: of the candidates' kernel Bellman loss.
        among: the candidates that may have a weight; None for all.
    """
    weights = data.row_weights
    result = []
    for fold in range(folds.count):
        others = folds.rows != fold
        total = float(weights[others].sum()) or 1.0
        terms = candidates.residual[:, others] * (weights * mass)[others] / total
        form = terms @ terms.T + RATIO_ERROR**2 * forms.form(fold)
        chosen = np.arange(len(form)) if among is None else np.asarray(among)
        own = np.zeros(len(form))
        own[chosen] = convex_weights(form[np.ix_(chosen, chosen)])
        result.append(own)
    return np.array(result)


def _variance(values: np.ndarray, data: Transitions) -> float:
    weights = data.row_weights
    mean = np.average(values, weights=weights)
    return float(np.average((values - mean) ** 2, weights=weights))


def _add(residuals: list[np.ndarray], norms: list[np.ndarray], found: tuple[np.ndarray, np.ndarray]) -> None:
    residuals.append(found[0])
    norms.append(found[1])


def _centred(score: np.ndarray, data: Transitions, folds: Folds, discount: float) -> tuple[np.ndarray, np.ndarray]:
    """The residual and what was taken off it: at discount 1 r + V' − Q is the value on average, if Q is right."""
    norm = np.zeros(len(score))
    if discount == 1:
        for fold in range(folds.count):
            others = np.where(folds.rows != fold, data.row_weights, 0.0)
            norm[folds.rows == fold] = np.average(score, weights=others) if others.any() else 0.0
    return score - norm, norm


def convex_weights(form: Float[np.ndarray, "J J"]) -> Float[np.ndarray, " J"]:
    """Convex weights, the w ≥ 0 with Σw = 1 that makes wᵀGw least; negative directions of G, from noise, count as 0.

    Example:
        >>> import numpy as np
        >>> convex_weights(np.diag([1.0, 3.0])).round(6)
        array([0.75, 0.25])
    """
    symmetric = (form + form.T) / 2
    own = np.maximum(np.diag(symmetric), 0.0)
    weights = np.zeros(len(form))
    if own.max() == 0:
        return weights + 1 / len(form)
    used = np.flatnonzero(own <= HOPELESS * max(own.min(), own.max() / HOPELESS**2))
    values, vectors = np.linalg.eigh(symmetric[np.ix_(used, used)])
    values = np.maximum(values, 0.0)
    root = np.sqrt(values / (values[-1] or 1.0))[:, None] * vectors.T
    found, _ = nnls(np.vstack([root, np.full(len(used), SUM_WEIGHT)]), np.append(np.zeros(len(used)), SUM_WEIGHT))
    weights[used] = found / found.sum()
    return weights
