"""Q at every logged pair and V at every next and initial state, from paths of the policy in the learned dynamics:

    V(s) = Σ_{t<K} γᵗ S_t r̂_t + γᴷ S_K V_φ(s_K),     Q(s,a) = r̂ + γ (1 − p_end) · (the same from ŝ', with K − 1 steps),

with S_t the learned probability of no end before step t, and V_φ the fitted value. The longer the paths, the less does
V_φ weigh, and the more do small errors of the dynamics grow: there is a Q for each of several K.

Each row has one path from its next state and one from where the dynamics say that it goes, with the same random
numbers. If the dynamics are nearly right the two stay together, and the randomness of the policy cancels in
r + γV' − Q. What is left of it differs from row to row and has mean 0, so that it adds noise to a doubly robust answer
and no bias: Q is the same function at pairs, next states and initial states, each time seen through a path.

At discount 1 rewards are counted from the model's own average, and V_φ from its mean over initial states, where ended
episodes restart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float, Int

from gradientdice.default.model.dynamics import Dynamics, LearnedStep
from gradientdice.default.model.encoding import Encoding
from gradientdice.default.model.fitted_value import FittedValues
from gradientdice.default.model.noise import DRAWS
from gradientdice.default.model.simulation import drawn_actions, traced_actions
from gradientdice.policies import DiscretePolicy, SamplingPolicy
from gradientdice.problem.folds import Folds
from gradientdice.problem.problem import Problem

# Paths from each initial state: there are few of those, and their noise does not cancel.
START_PATHS = 8


@dataclass(frozen=True, eq=False)
class RowValues:
    """Q and V of several discounts.

    Attributes:
        q: (n, g) at the logged pairs.
        next_value: (n, g) at the next states; 0 at ended rows.
        initial_value: (n0, g) at the initial states; None if the log has none.
    """

    q: Float[np.ndarray, "n g"]
    next_value: Float[np.ndarray, "n g"]
    initial_value: Float[np.ndarray, "n0 g"] | None


@dataclass(frozen=True, eq=False)
class Continuation:
    """What paths are continued with.

    Attributes:
        fitted: V_φ.
        discounts: of the values.
        rates: (g,) what is taken off each reward: at discount 1 the model's average, else 0.
        offsets: (f, g) what is taken off V_φ: at discount 1 its mean over initial states, else 0.
    """

    fitted: FittedValues
    discounts: Float[np.ndarray, " g"]
    rates: Float[np.ndarray, " g"]
    offsets: Float[np.ndarray, "f g"]

    @classmethod
    def of(
        cls,
        fitted: FittedValues,
        discounts: Sequence[float],
        averages: Sequence[float],
        restarts: Float[np.ndarray, "f r s"],
    ) -> Continuation:
        """From the model's own values, of which those at discount 1 are averages, and initial states of each fold."""
        used = np.asarray(discounts, dtype=np.float64)
        offsets = np.where(used == 1, fitted.at(restarts).mean(axis=1), 0.0)
        return cls(fitted, used, np.where(used == 1, averages, 0.0), offsets)

    def at(self, states: Float[np.ndarray, "j p s"]) -> Float[np.ndarray, "j p g"]:
        """V_φ at states of each network."""
        offsets = np.repeat(self.offsets, len(states) // len(self.offsets), axis=0)
        return self.fitted.at(states) - offsets[:, None]


def row_values(
    dynamics: Dynamics,
    continuation: Continuation,
    policy: DiscretePolicy | SamplingPolicy,
    problem: Problem,
    folds: Folds,
    lengths: Sequence[int],
) -> list[RowValues]:
    """Q and V for each length of paths, the shortest first.

    Args:
        dynamics: the networks; a row's paths are those of one that did not see its fold.
        continuation: of the paths.
        policy: called three times for each step.
        problem: the log.
        folds: of its rows and initial states.
        lengths: of the paths.
    """
    data = problem.data
    encoding, members = dynamics.encoding, dynamics.members
    rows, starts = _Dealt.of(folds.rows, members, folds.count), data.start_states
    size, inputs = encoding.state_size, rows.take(encoding.inputs(data))
    paths = _Paths.of(dynamics, policy, continuation, problem.seed)
    first = paths.begun(inputs[..., :size], inputs[..., size:])
    following = np.array(data.next_states)
    following[data.ended] = data.states[data.ended]
    begun = [rows.take(encoding.states(following)), first.reached]
    repeated = None
    if starts is not None:
        repeated = _Dealt.of(np.repeat(folds.initial, START_PATHS), members, folds.count)
        begun.append(repeated.take(np.repeat(encoding.states(starts), START_PATHS, axis=0)))
    found = []
    for real, modelled, *initial in paths.returns(begun, lengths):
        following_value = rows.back(real, len(data))
        following_value[data.ended] = 0.0
        at_starts = None
        if repeated is not None and starts is not None:
            at_starts = repeated.back(initial[0], len(starts) * START_PATHS)
            at_starts = at_starts.reshape(len(starts), START_PATHS, -1).mean(axis=1)
        found.append(RowValues(rows.back(first.continued(modelled), len(data)), following_value, at_starts))
    return found


@dataclass(frozen=True, eq=False)
class _First:
    """The first step of each row in the dynamics: the logged action."""

    reached: Float[np.ndarray, "j p s"]
    reward: Float[np.ndarray, "j p g"]
    factor: Float[np.ndarray, "j p g"]

    def continued(self, returns: Float[np.ndarray, "j p g"]) -> Float[np.ndarray, "j p g"]:
        return self.reward + self.factor * returns


@dataclass(frozen=True, eq=False)
class _Paths:
    """Simulates paths, and sums their rewards as it goes."""

    step: LearnedStep
    encoding: Encoding
    policy: DiscretePolicy | SamplingPolicy
    continuation: Continuation
    seed: int
    traced: Callable[..., Any] | None

    @classmethod
    def of(
        cls, dynamics: Dynamics, policy: DiscretePolicy | SamplingPolicy, continuation: Continuation, seed: int
    ) -> _Paths:
        traced = _with_policy(policy, dynamics.encoding) if policy.jax else None
        return cls(dynamics.step, dynamics.encoding, policy, continuation, seed, traced)

    def begun(self, states: np.ndarray, actions: np.ndarray) -> _First:
        """The step of the logged actions."""
        reached, reward, end = self._moved(states, actions, np.random.default_rng([self.seed, 5]))
        factor = self.continuation.discounts * (1 - end)[..., None]
        return _First(reached, reward[..., None] - self.continuation.rates, factor)

    def returns(self, begun: Sequence[np.ndarray], lengths: Sequence[int]) -> list[list[np.ndarray]]:
        """For each length K the returns of each group of paths: K steps, but K − 1 of the second group.

        The first two groups are of the same size and have the same random numbers.
        """
        gammas, rates = self.continuation.discounts, self.continuation.rates
        states = list(begun)
        totals = [np.zeros((*own.shape[:2], len(gammas))) for own in begun]
        alive = [np.ones(own.shape[:2]) for own in begun]
        found: list[list[np.ndarray]] = [[] for _ in lengths]
        cut: dict[int, np.ndarray] = {}
        for number in range(max(lengths) + 1):
            factor = gammas**number
            if number + 1 in lengths:
                cut[number + 1] = totals[1] + factor * alive[1][..., None] * self.continuation.at(states[1])
            if number in lengths:
                ends = [
                    total + factor * own[..., None] * self.continuation.at(at)
                    for total, own, at in zip(totals, alive, states, strict=True)
                ]
                found[lengths.index(number)] = [ends[0], cut[number], *ends[2:]]
            if number == max(lengths):
                break
            for group, own in enumerate(states):
                rng = np.random.default_rng([self.seed, 6, number, group // 2])
                reached, reward, end = self._taken(own, rng)
                totals[group] += factor * alive[group][..., None] * (reward[..., None] - rates)
                alive[group], states[group] = alive[group] * (1 - end), reached
        return found

    def _taken(self, states: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """A step of the policy."""
        if self.traced is None:
            return self._moved(states, self._actions(states, rng), rng)
        chance, noise = rng.random(states.shape[:2]).astype(np.float32), self._noise(states, rng)
        key = jax.random.key(int(rng.integers(2**31)))
        return _as_numpy(self.traced(self.step, states, chance, key, noise))

    def _actions(self, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        raw = self.encoding.raw_states(states.reshape(-1, states.shape[-1]))
        if isinstance(self.policy, SamplingPolicy):
            chosen = self.policy.sample(raw, rng)
        else:
            chosen = drawn_actions(self.policy.probabilities_at(raw), rng.random(len(raw)))
        return self.encoding.actions(chosen).reshape(*states.shape[:2], -1)

    def _moved(self, states: np.ndarray, actions: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        return _as_numpy(_compiled(self.step, states, actions, self._noise(states, rng)))

    @staticmethod
    def _noise(states: np.ndarray, rng: np.random.Generator) -> Int[np.ndarray, "j p"]:
        """Which draws of the noise each path gets."""
        return rng.integers(DRAWS, size=states.shape[:2], dtype=np.int32)


def _as_numpy(found: Any) -> tuple[np.ndarray, ...]:
    """Next states, rewards and probabilities of an end."""
    reached, reward, end, _ = found
    return np.asarray(reached), np.asarray(reward, dtype=np.float64), np.asarray(end, dtype=np.float64)


def _with_policy(policy: DiscretePolicy | SamplingPolicy, encoding: Encoding) -> Callable[..., Any]:
    """A step of a policy that is a JAX function, compiled with the dynamics."""

    @eqx.filter_jit
    def run(step: LearnedStep, states: Any, chance: Any, key: Any, noise: Any) -> Any:
        return step(states, traced_actions(policy, encoding, states, chance, key), noise)

    return run


@eqx.filter_jit
def _compiled(step: LearnedStep, states: Any, actions: Any, noise: Any) -> Any:
    return step(states, actions, noise)


@dataclass(frozen=True, eq=False)
class _Dealt:
    """Which rows each network simulates, as many for each: the first ones are repeated.

    Attributes:
        rows: (j, p).
        counts: (j,) how many of them are not repeated.
    """

    rows: Int[np.ndarray, "j p"]
    counts: Int[np.ndarray, " j"]

    @classmethod
    def of(cls, fold: Int[np.ndarray, " n"], members: int, folds: int) -> _Dealt:
        """Deals each fold's rows to the networks that did not see it."""
        own = [np.flatnonzero(fold == number)[member::members] for number in range(folds) for member in range(members)]
        counts = np.array([len(part) for part in own])
        most = int(counts.max())
        return cls(np.stack([np.resize(part if len(part) else np.zeros(1, int), most) for part in own]), counts)

    def take(self, array: np.ndarray) -> np.ndarray:
        """The rows' entries, by network."""
        return array[self.rows]

    def back(self, values: Float[np.ndarray, "j p g"], count: int) -> Float[np.ndarray, "n g"]:
        """By row again, of which there are so many."""
        found = np.zeros((count, values.shape[-1]))
        for own, part, kept in zip(self.rows, values, self.counts, strict=True):
            found[own[:kept]] = part[:kept]
        return found
