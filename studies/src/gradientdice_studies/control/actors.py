"""Trained actors from files, evaluated in NumPy, and the policies that are made of them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from jaxtyping import Float, Num

from gradientdice.policies import DiscretePolicy, SamplingPolicy


@dataclass(frozen=True, eq=False)
class Actor:
    """Two hidden layers of tanh units; the output is a mean action, or the logits of discrete actions.

    Attributes:
        layers: weight (inputs × outputs) and bias of each layer, first to last.
        deviation: of each continuous action, as trained; None for discrete actions.
    """

    layers: tuple[tuple[np.ndarray, np.ndarray], ...]
    deviation: Float[np.ndarray, " k"] | None

    @classmethod
    def load(cls, name: str) -> Actor:
        """One of the actors that come with the package; `train.py` made them."""
        from safetensors.numpy import load

        place = files("gradientdice_studies.control").joinpath(f"data/{name}.safetensors")
        weights = {key: value.astype(np.float64) for key, value in load(place.read_bytes()).items()}
        log_deviation = weights.pop("log_deviation", None)
        count = len(weights) // 2
        layers = tuple((weights[f"layer{k}.weight"], weights[f"layer{k}.bias"]) for k in range(count))
        return cls(layers, None if log_deviation is None else np.exp(log_deviation))

    def __call__(self, states: Num[np.ndarray, "n d"]) -> Float[np.ndarray, "n k"]:
        """Mean actions, or logits."""
        values = np.asarray(states, dtype=np.float64)
        for weight, bias in self.layers[:-1]:
            values = np.tanh(values @ weight + bias)
        weight, bias = self.layers[-1]
        return values @ weight + bias

    def choosing(self) -> DiscretePolicy:
        """Discrete actions with the probabilities of the logits."""

        def probabilities(states: np.ndarray) -> np.ndarray:
            logits = self(states)
            raised = np.exp(logits - logits.max(axis=1, keepdims=True))
            return raised / raised.sum(axis=1, keepdims=True)

        return DiscretePolicy(probabilities, len(self.layers[-1][1]))

    def noisy(self, noise: float, bound: float, scale: float = 1.0) -> SamplingPolicy:
        """Mean actions times a scale, plus noise of so many trained deviations, cut at the bound as in training."""
        assert self.deviation is not None
        spread = noise * self.deviation

        def sample(states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
            mean = scale * self(states)
            return np.clip(mean + spread * rng.normal(size=mean.shape), -bound, bound)

        return SamplingPolicy(sample)


def uniform_choices(num_actions: int) -> DiscretePolicy:
    """Every action with the same probability."""
    return DiscretePolicy(lambda states: np.full((len(states), num_actions), 1 / num_actions), num_actions)


def uniform_draws(dimension: int, bound: float) -> SamplingPolicy:
    """Every action up to the bound with the same density."""
    return SamplingPolicy(lambda states, rng: rng.uniform(-bound, bound, size=(len(states), dimension)))


def mixed_choices(target: DiscretePolicy, other: DiscretePolicy, share: float) -> DiscretePolicy:
    """At each step the target with probability `share`, else the other: β = π/μ is at most 1/share."""

    def probabilities(states: np.ndarray) -> np.ndarray:
        return share * target.probabilities_at(states) + (1 - share) * other.probabilities_at(states)

    return DiscretePolicy(probabilities, target.num_actions)


def mixed_draws(target: SamplingPolicy, other: SamplingPolicy, share: float) -> SamplingPolicy:
    """The same for continuous actions."""

    def sample(states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        own = rng.random(len(states)) < share
        return np.where(own[:, None], target.sample(states, rng), other.sample(states, rng))

    return SamplingPolicy(sample)


def draw(
    policy: DiscretePolicy | SamplingPolicy, states: Num[np.ndarray, "n d"], rng: np.random.Generator
) -> np.ndarray:
    """One action for each state."""
    if isinstance(policy, SamplingPolicy):
        return policy.sample(states, rng)
    below = rng.random(len(states))[:, None] > np.cumsum(policy.probabilities_at(states), axis=1)
    # Probabilities may add up to less than 1 by rounding.
    return np.minimum(below.sum(axis=1), policy.num_actions - 1)
