"""The returns of simulated paths, as samples to fit values to.

    G_t = r_t + γ (1 − end_t) G_{t+1},

until the path is cut, from where a fitted value continues it: G_t = R_t + c_t V(s_cut), with R_t the simulated part and
c_t = γ^(steps to the cut), or 0 after an end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from gradientdice.default.model.simulation import Paths
from gradientdice.estimators.doubly_robust.network_scores import simulated_discount


def truncated_returns(paths: Paths, discount: float) -> tuple[Float[np.ndarray, "h j p"], Float[np.ndarray, "h j p"]]:
    """R_t and c_t of each step."""
    used = simulated_discount(discount)
    total, factor = np.zeros(paths.rewards.shape), np.zeros(paths.rewards.shape)
    after, share = np.zeros(paths.rewards.shape[1:]), np.ones(paths.rewards.shape[1:])
    for step in range(len(total) - 1, -1, -1):
        after, share = np.where(paths.cut[step], 0.0, after), np.where(paths.cut[step], 1.0, share)
        goes_on = used * (1.0 if discount == 1 else ~paths.ended[step])
        after, share = paths.rewards[step] + goes_on * after, goes_on * share
        total[step], factor[step] = after, share
    return total, factor


def lasting_share(paths: Paths, discount: float, long: int) -> float:
    """The share of the policy's time, discounted, that is before an end: (1−γ) Σ γᵗ P(no end before t).

    Of the long paths, which start where episodes do; those that reach the horizon are taken to go on.
    """
    if discount == 1:
        return 1.0
    ended = np.logical_or.accumulate(paths.ended[:, :, :long], axis=0)
    alive = np.concatenate([[1.0], 1.0 - ended.mean(axis=(1, 2), dtype=np.float64)])
    factors = discount ** np.arange(len(alive))
    return float((1 - discount) * factors[:-1] @ alive[:-1] + factors[-1] * alive[-1])


def average_rewards(paths: Paths, long: int) -> Float[np.ndarray, " j"]:
    """The average reward of the policy in each network, where ended episodes start again.

    That is E[sum of an episode's rewards] / E[its length], from the long paths: Σ_a S(a) r(a) / Σ_a S(a), with r(a) the
    mean reward of steps that are a steps into their episode, and S(a) the share of episodes that get there (Kaplan and
    Meier's estimate, which takes unfinished episodes as they are). A mean over late steps would depend on where in an
    episode they happen to be: all paths start together, and with episodes of equal length they stay in step.

    Episodes that reach the horizon are taken to go on at the mean reward of the horizon's second half, and to end at
    its rate; without any end the result is that mean.
    """
    ended, rewards = paths.ended[:, :, :long], paths.rewards[:, :, :long].astype(np.float64)
    horizon = len(rewards)
    age = np.zeros(ended.shape, dtype=np.int64)
    for step in range(1, horizon):
        age[step] = np.where(ended[step - 1], 0, age[step - 1] + 1)
    found = []
    for number in range(ended.shape[1]):
        ages, pays, ends = age[:, number].ravel(), rewards[:, number].ravel(), ended[:, number].ravel()
        steps, total, over = (
            np.bincount(ages, weights, minlength=horizon).astype(np.float64) for weights in (None, pays, ends)
        )
        late = slice(horizon // 2, None)
        # Half an end is added, for networks in which none of the late steps is one.
        rate = (over[late].sum() + 0.5 * ended.any()) / (steps[late].sum() + 1.0)
        lasting = np.cumprod(1 - over / np.maximum(steps, 1))
        reached = np.append(1.0, lasting[:-1]) * (steps > 0)
        going_on = lasting[-1] * (steps[-1] > 0)
        if going_on > 0 and rate == 0:
            found.append(total[late].sum() / steps[late].sum())
            continue
        beyond = going_on / rate if going_on > 0 else 0.0
        earned = reached @ (total / np.maximum(steps, 1)) + beyond * total[late].sum() / max(steps[late].sum(), 1.0)
        found.append(earned / (reached.sum() + beyond))
    return np.array(found)


@dataclass(frozen=True, eq=False)
class ReturnSamples:
    """What is known of V at the simulated states, those of a fold's networks together.

    Attributes:
        states: (f, n, s), standardised.
        last: (f, n, s) where the path was cut.
        rewards: (f, n, g) the simulated part of the return, for each discount.
        factors: (f, n, g) of the value at the cut.
        path: (n,) the path that each sample is of.
        long: (n,) whether that is a long path, with at least a quarter of the horizon to come.
        levels: (f, g) a constant that continues all returns at first: r̄ / (1 − γ(1 − end rate)) of late steps.
    """

    states: Float[np.ndarray, "f n s"]
    last: Float[np.ndarray, "f n s"]
    rewards: Float[np.ndarray, "f n g"]
    factors: Float[np.ndarray, "f n g"]
    path: Int[np.ndarray, " n"]
    long: Bool[np.ndarray, " n"]
    levels: Float[np.ndarray, "f g"]

    @classmethod
    def of(cls, paths: Paths, folds: int, discounts: Sequence[float]) -> ReturnSamples:
        """The samples of all paths."""
        returns = [truncated_returns(paths, discount) for discount in discounts]
        rewards, factors = (_by_fold(np.stack(parts, axis=-1), folds) for parts in zip(*returns, strict=True))
        steps, networks, count = paths.rewards.shape
        # A long path is cut after the last step alone.
        long = (paths.cut.sum(axis=0) == 1) & (np.arange(steps)[:, None] <= 3 * steps // 4)
        return cls(
            _by_fold(paths.states, folds),
            _by_fold(_last_states(paths), folds),
            rewards,
            factors,
            np.tile(np.arange(networks // folds * count), steps),
            np.tile(long, networks // folds).ravel(),
            _levels(paths, folds, discounts),
        )


def _by_fold(array: np.ndarray, folds: int) -> np.ndarray:
    """(h, folds·members, p, k) as (folds, h·members·p, k)."""
    steps, networks, paths, size = array.shape
    grouped = array.reshape(steps, folds, networks // folds, paths, size)
    return np.moveaxis(grouped, 1, 0).reshape(folds, -1, size)


def _last_states(paths: Paths) -> Float[np.ndarray, "h j p s"]:
    """The state in which each step's path was cut."""
    last = np.empty_like(paths.reached)
    following = paths.reached[-1]
    for step in range(len(last) - 1, -1, -1):
        following = np.where(paths.cut[step][:, None], paths.reached[step], following)
        last[step] = following
    return last


def _levels(paths: Paths, folds: int, discounts: Sequence[float]) -> Float[np.ndarray, "f g"]:
    late = slice(len(paths.rewards) // 2, None)
    reward, ending = (
        array[late].mean(axis=(0, 2)).reshape(folds, -1).mean(axis=1) for array in (paths.rewards, paths.ended)
    )
    levels = [
        reward / (1 - simulated_discount(discount) * (1.0 if discount == 1 else 1 - ending)) for discount in discounts
    ]
    return np.stack(levels, axis=1)
