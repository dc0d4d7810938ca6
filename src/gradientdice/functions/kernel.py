"""Kernel features for continuous states: random Fourier features and Nyström features of a Gaussian kernel.

Inputs are standardised with the log's own means and deviations. Discrete actions get a block of features each, so that
expectations over actions are exact; continuous actions are part of the input. A constant feature is always there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Num

from gradientdice.base.errors import InputError, require_count, require_number
from gradientdice.functions.kernel_features import FourierFeatures, LandmarkFeatures
from gradientdice.functions.rows import BlockRows, DenseRows
from gradientdice.functions.tabular import require_discrete
from gradientdice.log.transitions import Transitions
from gradientdice.policies import Policy, SamplingPolicy, StatePolicy

# Kernel features are many and nearly collinear: directions below this share of the largest are noise.
RANK_TOLERANCE = 1e-7


@dataclass(frozen=True, eq=False)
class FittedKernel:
    """Kernel features, scaled to a log.

    Attributes:
        center: the inputs' means.
        scale: their standard deviations (1 where an input is constant).
        features: standardised inputs (n, d) -> (n, M), a constant first.
        num_actions: how many discrete actions, or None for continuous ones.
        draws: actions drawn in each state from a policy that can only be sampled.
        rank_tolerance: directions of the features below this share of the largest are dropped by a solver.
    """

    center: Float[np.ndarray, " d"]
    scale: Float[np.ndarray, " d"]
    features: Callable[[np.ndarray], np.ndarray]
    num_actions: int | None
    draws: int = 4
    rank_tolerance: float = RANK_TOLERANCE

    def at(self, states: Num[np.ndarray, "n ..."], actions: Num[np.ndarray, "n ..."]) -> BlockRows | DenseRows:
        """The kernel's features x(s,a)."""
        if self.num_actions is None:
            return DenseRows(self._features(states, actions))
        return BlockRows(self._features(states), self.indicators(actions))

    def indicators(self, actions: Num[np.ndarray, "n ..."]) -> Float[np.ndarray, "n A"]:
        """Discrete actions as rows that are 1 in the action's own column."""
        assert self.num_actions is not None
        require_discrete(actions, self.num_actions)
        return np.eye(self.num_actions)[actions]

    def expected(
        self, states: Num[np.ndarray, "n ..."], policy: StatePolicy, rng: np.random.Generator
    ) -> BlockRows | DenseRows:
        """Expected features Σ_a π(a|s) x(s,a): exact for discrete actions, a mean of several draws for a sampler."""
        if isinstance(policy, SamplingPolicy):
            draws = policy.draws or self.draws
            total = sum(self._features(states, policy.sample(states, rng)) for _ in range(draws))
            return DenseRows(np.asarray(total) / draws)
        return BlockRows(self._features(states), policy.probabilities_at(states))

    def unlogged_message(self, feature: int, count: int) -> str:
        """The refusal for the first of `count` features that the policy reaches and the log does not."""
        if self.num_actions is None:
            return (
                f"Feature {feature} is 0 in every logged row but not where the policy goes ({count} such features). "
                "Log more data."
            )
        block = self.features(np.zeros((1, len(self.center)))).shape[1]
        return unlogged_action_message(feature // block)

    def inputs(
        self, states: Num[np.ndarray, "n ..."], actions: Num[np.ndarray, "n ..."] | None = None
    ) -> Float[np.ndarray, "n d"]:
        """Standardised inputs of the features."""
        return (as_inputs(states, actions) - self.center) / self.scale

    def _features(self, states: np.ndarray, actions: np.ndarray | None = None) -> np.ndarray:
        return self.features(self.inputs(states, actions))


def unlogged_action_message(action: int) -> str:
    """The refusal for an action that the policy takes and the log never contains."""
    return (
        f"The policy takes action {action}, which the log never contains: nothing is known of what follows it. Log "
        "more data, or evaluate a policy that does not take it."
    )


def as_inputs(states: np.ndarray, actions: np.ndarray | None) -> np.ndarray:
    """States, and continuous actions if given, as one float matrix."""
    parts = [array.reshape(len(array), -1) for array in (states, actions) if array is not None]
    return np.concatenate(parts, axis=1, dtype=np.float64)


@dataclass(frozen=True)
class RandomFourier:
    """Random Fourier features of the kernel exp(−‖z − z'‖² / 2h²) over standardised inputs z.

    Attributes:
        num_features: how many, for each discrete action.
        bandwidth: h, in units of √d for d inputs. With a pair, each feature has its own, drawn log-uniformly between
            the two: coarse and fine features in one class.
        seed: of the random frequencies.
        action_stretch: how many times as wide the kernel is along continuous actions. One action moves the next state
            little, so that values vary less along it than along the state.
        rank_tolerance: directions of the features below this share of the largest are dropped by a solver.

    Example:
        >>> import gradientdice as gd
        >>> gd.RandomFourier(400, bandwidth=0.5).num_features
        400
        >>> gd.RandomFourier(400, bandwidth=(0.15, 1.5)).bandwidth
        (0.15, 1.5)
    """

    num_features: int = 400
    bandwidth: float | tuple[float, float] = 0.7
    seed: int = 0
    action_stretch: float = 1.0
    rank_tolerance: float = RANK_TOLERANCE

    def __post_init__(self) -> None:
        require_count("num_features", self.num_features)
        ends = self.bandwidth if isinstance(self.bandwidth, tuple) else (self.bandwidth, self.bandwidth)
        for end in ends:
            require_number("bandwidth", end, low=0, open_low=True)
        if len(ends) != 2 or ends[0] > ends[1]:
            raise InputError(f"bandwidth must be a number or a pair (smallest, largest), not {self.bandwidth!r:.60}.")
        require_count("seed", self.seed, low=0)
        require_number("action_stretch", self.action_stretch, low=0, open_low=True)
        require_number("rank_tolerance", self.rank_tolerance, low=0, high=1)

    def fitted(self, data: Transitions, policy: Policy) -> FittedKernel:
        """The features, scaled to a log."""
        center, scale, num_actions = input_scaling(data, policy)
        size = len(center)
        rng = np.random.default_rng(self.seed)
        frequencies = rng.normal(size=(size, self.num_features)) / (2 * math.pi * math.sqrt(size))
        if num_actions is None:
            frequencies[data.states[0].size :] /= self.action_stretch
        phases = rng.uniform(0, 1, size=self.num_features)
        frequencies /= self._bandwidths(rng)
        features = FourierFeatures(frequencies, phases)
        return FittedKernel(center, scale, features, num_actions, rank_tolerance=self.rank_tolerance)

    def _bandwidths(self, rng: np.random.Generator) -> float | np.ndarray:
        """The bandwidth of each feature, or one for all of them."""
        if not isinstance(self.bandwidth, tuple):
            return self.bandwidth
        return np.exp(rng.uniform(*np.log(self.bandwidth), size=self.num_features))


@dataclass(frozen=True)
class Nystrom:
    """Nyström features: values of the kernel exp(−‖z − z'‖² / 2h²) at landmarks drawn from the log.

    Attributes:
        num_features: how many landmarks, for each discrete action.
        bandwidth: h, in units of √d for d inputs.
        seed: of the choice of landmarks.
    """

    num_features: int = 400
    bandwidth: float = 0.7
    seed: int = 0

    def __post_init__(self) -> None:
        require_count("num_features", self.num_features)
        require_number("bandwidth", self.bandwidth, low=0, open_low=True)
        require_count("seed", self.seed, low=0)

    def fitted(self, data: Transitions, policy: Policy) -> FittedKernel:
        """The features, scaled to a log."""
        center, scale, num_actions = input_scaling(data, policy)
        distinct = np.flatnonzero(data.units.distinct)
        chosen = np.random.default_rng(self.seed).permutation(distinct)[: self.num_features]
        actions = data.actions[chosen] if num_actions is None else None
        landmarks = (as_inputs(data.states[chosen], actions) - center) / scale
        factor = 1 / (2 * self.bandwidth**2 * len(center))
        return FittedKernel(center, scale, LandmarkFeatures(landmarks, factor), num_actions)


def input_scaling(data: Transitions, policy: Policy) -> tuple[np.ndarray, np.ndarray, int | None]:
    """The inputs' means and deviations, and the number of discrete actions, if they are discrete.

    They are those of the distinct rows, so that neither weights nor copies move the features.
    """
    num_actions = None if isinstance(policy, SamplingPolicy) else policy.num_actions
    inputs = as_inputs(data.states, data.actions if num_actions is None else None)
    distinct = data.units.distinct
    inputs = inputs if distinct.all() else inputs[distinct]
    scale = inputs.std(axis=0)
    return inputs.mean(axis=0), np.where(scale > 0, scale, 1.0), num_actions
