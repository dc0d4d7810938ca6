"""The conjugate model of a table: Dirichlet transitions and starts, and rewards with a conjugate model of their own.

    p(·|s,a) ~ Dirichlet(N(s,a,·) + c/S),      μ0 ~ Dirichlet(N0 + c/S0),

over the S states that the log shows (and the end, where episodes end) and the S0 states that it starts in: the prior
counts as c observations, spread evenly. Rewards of a pair, if the log has few different ones, are Dirichlet in the same
way over those that it has (for 0 and 1 with c = 1 that is Jeffreys' Beta(½, ½)). Else their mean is that of a normal
model with unknown variance: the prior counts as c observations with the mean and variance of all logged rewards.

A pair that was never logged has its prior alone, so that what the log lacks makes the posterior wide. Rows are taken to
be independent given state and action, as in any Markov decision process. Weights are scaled to an average of 1, and
exact copies are one observation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from gradientdice.base.errors import InputError, starts_missing
from gradientdice.log.transitions import Transitions
from gradientdice.statistics.posterior.table import chain_values

# With no more different rewards than this, they are a few possible outcomes rather than amounts.
FEW_REWARDS = 10
# A draw of a table with more numbers than this takes more than milliseconds.
LARGEST_MODEL = 200_000


@dataclass(frozen=True, eq=False)
class DirichletModel:
    """The posterior of a table's dynamics; policies share its draws.

    Attributes:
        states: (S,) the numbers of the states that the log shows.
        num_actions: A.
        steps: (S·A, S or S + 1) the parameters of the transitions; the end is the last.
        starts: (S0,) the parameters of the starts; None if they are not known.
        start_places: (S0,) where the starts are among the states.
        rewards: the posterior of the mean rewards.
        ends: whether episodes end.
    """

    states: Int[np.ndarray, " S"]
    num_actions: int
    steps: Float[np.ndarray, "P T"]
    starts: Float[np.ndarray, " S0"] | None
    start_places: Int[np.ndarray, " S0"] | None
    rewards: FewRewards | NormalRewards
    ends: bool

    @classmethod
    def of(cls, data: Transitions, num_actions: int, prior: float) -> DirichletModel:
        """The posterior given a log.

        Args:
            data: the log.
            num_actions: A.
            prior: c, how many observations the prior counts as.
        """
        shown = [data.states, data.next_states[~data.ended]]
        if data.start_states is not None:
            shown.append(data.start_states)
        states = np.unique(np.concatenate(shown)).astype(np.int64)
        ends, size = bool(data.ended.any()), len(states)
        if size * num_actions * (size + ends) > LARGEST_MODEL:
            raise InputError(
                f"The Dirichlet model of {size:,} states and {num_actions} actions is too large to be drawn thousands "
                'of times: use model="bootstrap".'
            )
        counts = _counts(data)
        pair = np.searchsorted(states, data.states) * num_actions + data.actions
        following = np.where(data.ended, size, np.searchsorted(states, data.next_states).clip(max=size - 1))
        steps = np.full((size * num_actions, size + ends), prior / (size + ends))
        np.add.at(steps, (pair, following), counts)
        starts = places = None
        if data.start_states is not None and data.start_weights is not None:
            begun, index = np.unique(data.start_states, return_inverse=True)
            weights = data.start_weights / data.start_weights[data.start_weights > 0].mean()
            starts = np.bincount(index, weights) + prior / len(begun)
            places = np.searchsorted(states, begun)
        return cls(states, num_actions, steps, starts, places, _rewards(data, pair, counts, len(steps), prior), ends)

    def draw(self, count: int, rng: np.random.Generator) -> DrawnModels:
        """A batch of models."""
        steps = rng.standard_gamma(self.steps, size=(count, *self.steps.shape))
        steps /= steps.sum(axis=2, keepdims=True)
        start = None
        if self.starts is not None:
            drawn = rng.standard_gamma(self.starts, size=(count, len(self.starts)))
            start = np.zeros((count, len(self.states)))
            start[:, self.start_places] = drawn / drawn.sum(axis=1, keepdims=True)
        return DrawnModels(steps, self.rewards.draw(count, rng), start, len(self.states) if self.ends else None)


@dataclass(frozen=True, eq=False)
class DrawnModels:
    """A batch of models.

    Attributes:
        steps: (b, S·A, S or S + 1) transition probabilities; the end is the last.
        rewards: (b, S·A) mean rewards.
        start: (b, S) the initial distribution; None if it is not known.
        end: the number of the state after the end; None if nothing ends.
    """

    steps: Float[np.ndarray, "b P T"]
    rewards: Float[np.ndarray, "b P"]
    start: Float[np.ndarray, "b S"] | None
    end: int | None

    def values(self, policy: Float[np.ndarray, "S A"], discount: float) -> Float[np.ndarray, " b"]:
        """ρ of a policy in each model."""
        if self.start is None and (discount < 1 or self.end is not None):
            raise starts_missing(discount)
        states, actions = policy.shape
        shape = (len(self.steps), states, actions, -1)
        chain = np.einsum("sa,bsat->bst", policy, self.steps.reshape(shape))
        reward = np.einsum("sa,bsa->bs", policy, self.rewards.reshape(shape[:3]))
        return chain_values(chain, reward, self.start, discount, self.end)


@dataclass(frozen=True, eq=False)
class FewRewards:
    """Dirichlet posteriors over the few different rewards of the log: (S·A, R) parameters, (R,) rewards."""

    parameters: Float[np.ndarray, "P R"]
    values: Float[np.ndarray, " R"]

    def draw(self, count: int, rng: np.random.Generator) -> Float[np.ndarray, "b P"]:
        """The mean rewards of a batch of models."""
        drawn = rng.standard_gamma(self.parameters, size=(count, *self.parameters.shape))
        return drawn @ self.values / drawn.sum(axis=2)

    @property
    def note(self) -> str:
        """The prior in words."""
        return f"rewards: Dirichlet over the {len(self.values)} that the log shows"


@dataclass(frozen=True, eq=False)
class NormalRewards:
    """Normal–inverse-gamma posteriors of each pair's mean reward; (S·A,) parameters each."""

    location: Float[np.ndarray, " P"]
    strength: Float[np.ndarray, " P"]
    shape: Float[np.ndarray, " P"]
    scale: Float[np.ndarray, " P"]

    def draw(self, count: int, rng: np.random.Generator) -> Float[np.ndarray, "b P"]:
        """The mean rewards of a batch of models."""
        variance = self.scale / rng.standard_gamma(self.shape, size=(count, len(self.shape)))
        return self.location + np.sqrt(variance / self.strength) * rng.standard_normal(variance.shape)

    @property
    def note(self) -> str:
        """The prior in words."""
        return "rewards: a normal model of each pair, its prior the mean and variance of all rewards"


def _rewards(
    data: Transitions, pair: np.ndarray, counts: np.ndarray, pairs: int, prior: float
) -> FewRewards | NormalRewards:
    """The posterior of the pairs' mean rewards."""
    values, which = np.unique(data.rewards, return_inverse=True)
    if len(values) <= FEW_REWARDS:
        parameters = np.full((pairs, len(values)), prior / len(values))
        np.add.at(parameters, (pair, which), counts)
        return FewRewards(parameters, values)
    center = float(np.average(data.rewards, weights=counts))
    spread = float(np.average((data.rewards - center) ** 2, weights=counts))
    number = np.bincount(pair, counts, minlength=pairs)
    total = np.bincount(pair, counts * data.rewards, minlength=pairs)
    mean = np.divide(total, number, out=np.full(pairs, center), where=number > 0)
    squares = np.bincount(pair, counts * (data.rewards - mean[pair]) ** 2, minlength=pairs)
    strength = prior + number
    away = prior * number / strength * (mean - center) ** 2
    # The 1 in the shape makes scale / (shape − 1), the mean of the variance, that of all rewards before any row of the
    # pair, and keeps the variance of the mean reward finite however weak the prior is.
    return NormalRewards(
        (prior * center + total) / strength,
        strength,
        1.0 + prior / 2 + number / 2,
        prior * spread / 2 + squares / 2 + away / 2,
    )


def _counts(data: Transitions) -> Float[np.ndarray, " n"]:
    """How many observations each row is: its weight with that of its copies, scaled to an average of 1."""
    units = data.units
    weight = np.bincount(units.original, data.row_weights, minlength=len(data))
    counts = np.where(units.distinct, weight, 0.0)
    return counts / counts[units.distinct].mean()
