"""Sums over time of what episodes show, each weighted by its importance: what all trajectory estimators are made of.

With w_i how often episode i counts, c_t = (1−γ)γᵗ and β_{0:t} the product of its importance ratios up to t,

    value = Σ_t c_t v_t,   v_t = Σ_i ω_it y_it,   ω_it = w_i βⁱ_{0:t} / S_t,

where S_t is Σ_i w_i (plain) or Σ_i w_i βⁱ_{0:t} (normalised over the episodes at each time). After its last row an
episode keeps its product and has y = 0: at the absorbing state that is so, and after a cut it is what is missing.
Whole-trajectory weights have the last product at all times.

A plain sum is a mean over episodes; the normalised one is, to first order, value + Σ_i Σ_t c_t ω_it (y_it − v_t). All
is done in logarithms, so that neither long nor zero products matter to the normalised sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from gradientdice.base.errors import InputError
from gradientdice.estimators.behavior import Episodes


@dataclass(frozen=True, eq=False)
class StepWeights:
    """ω of episodes over time.

    Attributes:
        discount: γ.
        episodes: the log's.
        normalised: whether ω sums to 1 over the episodes at each time.
        rows: (n,) ω of each row.
        log_final: (E,) log w_i βⁱ after the last row.
        log_total: (H + 1,) log S_t; the last holds for ever.
    """

    discount: float
    episodes: Episodes
    normalised: bool
    rows: Float[np.ndarray, " n"]
    log_final: Float[np.ndarray, " E"]
    log_total: Float[np.ndarray, " T"]

    @classmethod
    def of(
        cls,
        name: str,
        discount: float,
        episodes: Episodes,
        ratios: Float[np.ndarray, " n"],
        *,
        normalised: bool,
        whole: bool = False,
    ) -> StepWeights:
        """The weights of a log.

        Args:
            name: the estimator's, for refusals.
            discount: γ.
            episodes: the log's.
            ratios: (n,) β.
            normalised: whether to divide by the sum over episodes rather than by their number.
            whole: whether every row has its episode's last product.

        Raises:
            InputError: if a product is too large for a number, or all are 0 where they are to be normalised.
        """
        horizon = episodes.horizon
        if not normalised:
            episodes.products(name, ratios)  # refused if too large
        with np.errstate(divide="ignore"):
            logs = episodes.log_products(ratios) + np.log(episodes.weights)[episodes.index]
        final = logs[episodes.last]
        if whole:
            logs = final[episodes.index]
        total = np.full(horizon + 1, np.log(episodes.weights.sum()))
        if normalised and whole:
            total[:] = np.logaddexp.reduce(final)
        elif normalised:
            over = -np.inf  # the logarithm of the summed weights of the episodes that are over
            for step, rows in episodes.forwards():
                total[step] = np.logaddexp(np.logaddexp.reduce(logs[rows]), over)
                last = episodes.length[episodes.index[rows]] == step + 1
                over = np.logaddexp(over, np.logaddexp.reduce(logs[rows[last]], initial=-np.inf))
            total[horizon] = over
        if np.isneginf(total).any():
            step = int(np.argmax(np.isneginf(total)))
            raise InputError(
                f"{name} normalises importance weights over episodes, and by step {step} they are all 0: no logged "
                "episode takes only actions that the policy takes. Use GradientDICE, or log more data near the policy."
            )
        return cls(discount, episodes, normalised, np.exp(logs - total[episodes.step]), final, total)

    @property
    def coefficients(self) -> Float[np.ndarray, " n"]:
        """c_t ω of each row: what its y is multiplied by."""
        return self._mass(self.episodes.step) * self.rows

    def total(self, amounts: Float[np.ndarray, " n"]) -> float:
        """Σ_t c_t v_t of amounts y."""
        return float(self.coefficients @ amounts)

    def means(self, amounts: Float[np.ndarray, " n"]) -> Float[np.ndarray, " H"]:
        """c_t v_t at each time."""
        return np.bincount(self.episodes.step, self.coefficients * amounts)

    def shares(self, amounts: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Each row's share in the error of `total`; they add up to 0."""
        episodes, coefficients = self.episodes, self.coefficients
        if not self.normalised:
            # An episode's share of the mean, spread over its rows.
            even = (episodes.weights / episodes.weights.sum() / episodes.length)[episodes.index]
            return coefficients * amounts - even * float(coefficients @ amounts)
        mass = self._mass(np.arange(episodes.horizon))
        means = self.means(amounts)
        shares = coefficients * (amounts - (means / np.where(mass > 0, mass, 1.0))[episodes.step])
        # What is over still counts in the means of later times, with y = 0.
        shares[episodes.last] -= self._after(np.append(means, 0.0))
        return shares

    def ratio(self, row_weights: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """The weight of each row's y, so that the weighted mean of ratio · y over the rows is the value."""
        own = np.where(row_weights > 0, row_weights, 1.0)
        return self.coefficients / own * row_weights.sum()

    @property
    def density(self) -> Float[np.ndarray, " n"]:
        """ω of each row beside its episode's share of all: 1 everywhere if target and behaviour are the same."""
        counts = self.episodes.weights
        return self.rows * (counts.sum() / np.where(counts > 0, counts, 1.0))[self.episodes.index]

    def mean_ratio(self, also_cut: bool) -> float:
        """The mean of the ratio, the time after each episode's last row included.

        Args:
            also_cut: whether that time counts for episodes that were cut, as where V is used for it.
        """
        mass = self._mass(np.arange(self.episodes.horizon + 1))
        mass[-1] = self.discount**self.episodes.horizon  # all the time from then on
        after = self._after(mass)
        return float(self.coefficients.sum() + after[self.episodes.terminated | also_cut].sum())

    @property
    def cut_mass(self) -> float:
        """The share of the discounted time that lies after a cut, for the policy."""
        final = np.exp(self.log_final - self.log_final.max()) if self.log_final.max() > -np.inf else None
        weights = self.episodes.weights if final is None else final
        lost = np.where(self.episodes.terminated, 0.0, self.discount ** self.episodes.length.astype(float))
        return float(np.average(lost, weights=weights))

    def _mass(self, steps: np.ndarray) -> np.ndarray:
        return (1 - self.discount) * self.discount ** steps.astype(float)

    def _after(self, amounts: np.ndarray) -> np.ndarray:
        """(E,) Σ_{t ≥ length} amounts_t · (the weight of the episode that is over), by a recursion from the end.

        It runs in units of all that is over by t, which only grows and is a part of S_t, so that no factor is above 1.
        """
        over = self._log_over
        with np.errstate(invalid="ignore"):
            share, step = np.exp(over - self.log_total), np.append(np.exp(over[:-1] - over[1:]), 0.0)
        sums = np.zeros(len(over) + 1)
        for t in reversed(range(len(over))):
            if over[t] > -np.inf:
                sums[t] = amounts[t] * share[t] + step[t] * sums[t + 1]
        length = self.episodes.length
        none = np.isneginf(self.log_final)
        return np.exp(self.log_final - np.where(none, 0.0, over[length])) * sums[length]

    @cached_property
    def _log_over(self) -> Float[np.ndarray, " T"]:
        """The logarithm of Σ w_i βⁱ over the episodes that are over by each time."""
        at = np.full(len(self.log_total), -np.inf)
        np.logaddexp.at(at, self.episodes.length, self.log_final)
        return np.logaddexp.accumulate(at)
