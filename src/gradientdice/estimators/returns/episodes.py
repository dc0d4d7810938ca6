"""Returns of logged episodes, and the weighted distribution function

    F̂(x) = Σ_i ω_i 1{G_i ≤ x},     ω_i = w_i β_i / Σ_j w_j β_j,

with G_i = Σ_t γᵗ r_t and β_i the product of π/μ along the episode. A return is known only if the episode is whole: if
it ended, or is as long as the horizon asked for. Below discount 1 what a time limit cut off is bounded by the least and
the most that a logged step pays: the return lies between two numbers, and so does the distribution function. At
discount 1 there is no bound, and such a log is refused.

References:
    Chandak, Niekum, da Silva, Learned-Miller, Brunskill and Thomas, Universal Off-Policy Evaluation, NeurIPS 2021;
    here the weights are normalised.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradientdice.base.errors import InputError
from gradientdice.estimators.behavior import Episodes
from gradientdice.estimators.returns.points import StepFunction, places, representative
from gradientdice.log.transitions import Transitions


class UnknownTotals(InputError):
    """Episodes that were cut have no total, as discount 1 asks for."""


@dataclass(frozen=True, eq=False)
class EpisodeReturns:
    """What each episode returned.

    Attributes:
        episodes: the log's.
        low: (E,) the least that the return can be.
        high: (E,) the most; the same for a whole episode.
    """

    episodes: Episodes
    low: Float[np.ndarray, " E"]
    high: Float[np.ndarray, " E"]

    @classmethod
    def of(cls, name: str, data: Transitions, discount: float, horizon: int | None) -> EpisodeReturns:
        """The returns of a log.

        Args:
            name: who asks, for refusals.
            data: the log.
            discount: γ.
            horizon: after how many steps a return is complete; None is the end of the episode.

        Raises:
            UnknownTotals: at discount 1, if an episode was cut before it was complete.
        """
        episodes = Episodes.of(name, data)
        counted = episodes.step < (horizon or np.inf)
        amounts = np.where(counted, discount ** episodes.step.astype(float) * data.rewards, 0.0)
        seen = np.bincount(episodes.index, amounts)
        cut = ~episodes.terminated & (episodes.length < (horizon or np.inf))
        if not cut.any():
            return cls(episodes, seen, seen)
        if discount == 1:
            first = int(np.argmax(cut))
            raise UnknownTotals(
                f"{name}: at discount 1 a return is the total until the end, and {int(cut.sum())} episodes have none, "
                f"the first after {episodes.length[first]} steps; the average reward has no return distribution. Give "
                'a discount below 1, horizon=…, or source="model".'
            )
        begun = discount ** episodes.length.astype(float)
        left = begun if horizon is None else begun - discount ** float(horizon)
        rest = np.where(cut, left / (1 - discount), 0.0)
        # After an end that the log does not show, every step pays 0.
        least, most = min(float(data.rewards.min()), 0.0), max(float(data.rewards.max()), 0.0)
        return cls(episodes, seen + rest * least, seen + rest * most)

    @property
    def cut(self) -> int:
        """How many episodes were cut."""
        return int((self.high > self.low).sum())

    def weighted(self, data: Transitions, weights: Float[np.ndarray, " E"]) -> StepFunction:
        """The distribution function with these weights of the episodes, which add up to 1."""
        middle = self._function(data, weights, (self.low + self.high) / 2)
        if not self.cut:
            return middle
        ends = tuple(self._function(data, weights, returns) for returns in (self.low, self.high))
        return StepFunction(middle.points, middle.cdf, middle.shares, (ends[0], ends[1]))

    def _function(self, data: Transitions, weights: np.ndarray, returns: np.ndarray) -> StepFunction:
        points = representative(returns, weights)
        place = places(returns, points)
        cdf = np.cumsum(np.bincount(place, weights, minlength=len(points)))
        cdf /= cdf[-1]
        below = place[:, None] <= np.arange(len(points))
        shares = weights[:, None] * (below - cdf)
        return StepFunction(points, cdf, by_unit(data, self.episodes, shares))


def by_unit(data: Transitions, episodes: Episodes, shares: Float[np.ndarray, "E m"]) -> Float[np.ndarray, "u m"]:
    """The episodes' shares by independent unit: exact copies of an episode are one."""
    unit = data.units.rows[episodes.first]
    total = np.zeros((data.units.count, shares.shape[1]))
    np.add.at(total, unit[unit >= 0], shares[unit >= 0])
    return total
