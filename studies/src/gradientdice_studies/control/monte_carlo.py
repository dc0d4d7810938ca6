"""Values of a policy from chains of its own, and what running it for a number of steps would give.

Below discount 1 the value is (1−γ) Σ γᵗ r from a start to the end, or until what is left counts for less than `TAIL`;
every start of a chain that has so many steps left is used. At discount 1 it is the average reward of the chain that
starts again when it ends. Where all episodes are short, that is an episode's mean sum of rewards over its mean length;
else the mean reward after `BURN_IN` steps, in which the effect of the start dies out. Chains are independent; errors
are over chains.

Whoever runs the policy itself below discount 1 would run episodes until all but `ENOUGH` of the discounted steps are
seen, or they end: n steps are then n/c such episodes of c steps on average, and the error of their mean is √(c/n)
deviations of a return. At discount 1 the error of the mean of n steps is that of the chains here, times √(steps/n).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gradientdice_studies.control.simulate import Chains

TAIL, ENOUGH = 1e-5, 1e-2
# As many steps as 10⁻³ of discounted steps at γ = .99 would be.
BURN_IN = 600


@dataclass(frozen=True)
class Mean:
    """A Monte Carlo mean.

    Attributes:
        value: the mean.
        error: its standard error.
        step_error: the standard error of running the policy for n steps is this over √n.
        drift: after a burn-in, the mean of the later half less that of the earlier half, in standard errors: about 0
            where the effect of the start has died out.
    """

    value: float
    error: float
    step_error: float
    drift: float = 0.0


def mean_value(chains: Chains, discount: float) -> Mean:
    """The value of the policy that made the chains."""
    if discount < 1:
        return discounted(chains, discount)
    found = by_episodes(chains)
    return after_burn_in(chains) if found is None else found


def horizon(discount: float) -> int:
    """After how many steps what is left counts for less than `TAIL`."""
    return math.ceil(math.log(TAIL) / math.log(discount))


def discounted(chains: Chains, discount: float) -> Mean:
    """(1−γ) Σ γᵗ r over all starts that have enough steps left."""
    count, steps = chains.rewards.shape
    starts = _starts(chains, steps - horizon(discount) + 1)
    sums = _sums((1 - discount) * chains.rewards, chains, discount)
    enough = math.ceil(math.log(ENOUGH) / math.log(discount))
    returns, cost = sums[starts], np.minimum(_lengths(chains)[starts], enough)
    value = float(returns.mean())
    by_chain = np.bincount(np.nonzero(starts)[0], returns - value, minlength=count)
    return Mean(
        value,
        float(np.linalg.norm(by_chain)) / len(returns),
        float(returns.std(ddof=1)) * math.sqrt(float(cost.mean())),
    )


def by_episodes(chains: Chains) -> Mean | None:
    """Mean sum of rewards over mean length of the episodes that begin in the first half; None if one goes on."""
    count, steps = chains.rewards.shape
    starts = _starts(chains, steps // 2)
    totals, lengths = _sums(chains.rewards, chains, 1.0)[starts], _lengths(chains)[starts]
    if not np.isfinite(lengths).all():
        return None
    value = float(totals.sum() / lengths.sum())
    by_chain = np.bincount(np.nonzero(starts)[0], totals - value * lengths, minlength=count)
    error = float(np.linalg.norm(by_chain) / lengths.sum())
    return Mean(value, error, error * math.sqrt(float(lengths.sum())))


def after_burn_in(chains: Chains) -> Mean:
    """The mean reward after the burn-in."""
    kept = chains.rewards[:, BURN_IN:]
    count, steps = kept.shape
    means = kept.mean(axis=1)
    deviation = float(means.std(ddof=1))
    later = kept[:, steps // 2 :].mean(axis=1) - kept[:, : steps // 2].mean(axis=1)
    noise = float(later.std(ddof=1)) / math.sqrt(count)
    drift = float(later.mean()) / noise if noise > 0 else 0.0
    return Mean(float(means.mean()), deviation / math.sqrt(count), deviation * math.sqrt(steps), drift)


def _starts(chains: Chains, before: int) -> np.ndarray:
    """(chains, steps) whether an episode begins there; only those before a step."""
    starts = np.zeros(chains.rewards.shape, dtype=bool)
    starts[:, 0] = True
    starts[:, 1:] = chains.ended[:, :-1]
    starts[:, before:] = False
    return starts


def _sums(rewards: np.ndarray, chains: Chains, discount: float) -> np.ndarray:
    """(chains, steps) the discounted sum of what comes until the end of the episode, or of the chain."""
    sums = np.empty_like(rewards)
    after = np.zeros(len(rewards))
    for step in reversed(range(rewards.shape[1])):
        after = rewards[:, step] + discount * np.where(chains.ended[:, step], 0.0, after)
        sums[:, step] = after
    return sums


def _lengths(chains: Chains) -> np.ndarray:
    """(chains, steps) how many steps there are until the episode ends; infinite where that lies beyond the chain."""
    lengths = np.empty_like(chains.rewards)
    after = np.full(len(lengths), np.inf)
    for step in reversed(range(lengths.shape[1])):
        after = np.where(chains.ended[:, step], 1.0, after + 1)
        lengths[:, step] = after
    return lengths
