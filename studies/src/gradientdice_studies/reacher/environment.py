"""Gymnasium's Reacher-v5 under the trained actor with Gaussian noise: the log, and the truth by Monte Carlo.

Reacher-v2, which the paper used, is no longer available. Version 5 shows 10 numbers, without the vertical part of the
distance, which is always 0, and computes the reward after the step rather than before it. The dynamics and the 50-step
limit are the same.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from gradientdice.base.errors import InputError
from gradientdice.log.transitions import Transitions
from gradientdice.policies import SamplingPolicy

ENVIRONMENT, HORIZON = "Reacher-v5", 50
BEHAVIOR_NOISE, TARGET_NOISE = 0.1, 0.05
LOG_ROWS = 100_000


@dataclass(frozen=True, eq=False)
class Actor:
    """The TD3 actor: two hidden layers of rectified units, then tanh."""

    layers: tuple[tuple[np.ndarray, np.ndarray], ...]

    @classmethod
    def load(cls) -> Actor:
        """The actor that comes with the package."""
        from safetensors.numpy import load

        weights = load(files("gradientdice_studies.reacher").joinpath("data/actor.safetensors").read_bytes())
        count = len(weights) // 2
        layers = ((weights[f"layer{k}.weight"], weights[f"layer{k}.bias"]) for k in range(count))
        return cls(tuple((weight.astype(np.float64), bias.astype(np.float64)) for weight, bias in layers))

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """The action without noise."""
        values = observations[:, : self.layers[0][0].shape[0]]
        for weight, bias in self.layers[:-1]:
            values = np.maximum(values @ weight + bias, 0.0)
        weight, bias = self.layers[-1]
        return np.tanh(values @ weight + bias)


def noisy(actor: Actor, deviation: float) -> SamplingPolicy:
    """The actor's action plus Gaussian noise."""

    def sample(states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        mean = actor(states)
        return mean + deviation * rng.normal(size=mean.shape)

    return SamplingPolicy(sample)


def make() -> Any:
    """One environment without a time limit of its own."""
    try:
        import gymnasium

        return gymnasium.make(ENVIRONMENT, max_episode_steps=-1, disable_env_checker=True).unwrapped
    except ImportError as error:
        raise InputError("Reacher needs MuJoCo: pip install 'gradientdice[gym]'.") from error


def simulate(policy: SamplingPolicy, episodes: int, steps: int, seed: int) -> dict[str, np.ndarray]:
    """Episodes of a fixed number of steps, side by side so that the actor works on batches: (episodes, steps, …)."""
    rng = np.random.default_rng(seed)
    batch = min(episodes, 50)
    environments = [make() for _ in range(batch)]
    parts = []
    for first in range(0, episodes, batch):
        chosen = environments[: min(batch, episodes - first)]
        seeds = np.random.SeedSequence([seed, first]).generate_state(len(chosen))
        states = np.stack([env.reset(seed=int(s))[0] for env, s in zip(chosen, seeds, strict=True)])
        record: dict[str, list[np.ndarray]] = {"states": [], "actions": [], "rewards": [], "next_states": []}
        for _ in range(steps):
            actions = policy.sample(states, rng)
            results = [env.step(action) for env, action in zip(chosen, actions, strict=True)]
            following = np.stack([result[0] for result in results])
            rewards = np.array([result[1] for result in results])
            for name, value in zip(record, (states, actions, rewards, following), strict=True):
                record[name].append(value)
            states = following
        parts.append({name: np.stack(values, axis=1) for name, values in record.items()})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def make_log(seed: int = 0, rows: int = LOG_ROWS, behavior: SamplingPolicy | None = None) -> Transitions:
    """A log of the behaviour policy: episodes of 50 steps, truncated by the time limit."""
    found = simulate(behavior or noisy(Actor.load(), BEHAVIOR_NOISE), rows // HORIZON, HORIZON, seed)
    episodes = np.repeat(np.arange(rows // HORIZON), HORIZON)
    truncated = np.tile(np.arange(HORIZON) == HORIZON - 1, rows // HORIZON)
    flat = {name: value.reshape(rows, *value.shape[2:]) for name, value in found.items()}
    return Transitions(**flat, episodes=episodes, truncated=truncated)


def fingerprint(data: Transitions) -> str:
    """A hash of the log, rounded so that it does not depend on the last bits, in which MuJoCo's versions differ."""
    digest = hashlib.sha256()
    for array in (data.states, data.actions, data.rewards):
        digest.update(np.round(array, 4).astype(np.float32).tobytes())
    return digest.hexdigest()[:16]


def returns(policy: SamplingPolicy, discounts: tuple[float, ...], episodes: int, seed: int, steps: int) -> np.ndarray:
    """(episodes, discounts, 2): Σ γᵗ r, normalised by 1 − γ (at discount 1 the mean of an episode's 50 rewards).

    The last axis has first the sum over 50 steps, as if the time limit were the end, then the sum over all steps.
    """
    rewards = simulate(policy, episodes, steps, seed)["rewards"]
    result = np.empty((episodes, len(discounts), 2))
    for position, discount in enumerate(discounts):
        if discount == 1:
            result[:, position] = rewards[:, :HORIZON].mean(axis=1)[:, None]
            continue
        weights = (1 - discount) * discount ** np.arange(steps)
        result[:, position, 0] = rewards[:, :HORIZON] @ weights[:HORIZON]
        result[:, position, 1] = rewards @ weights
    return result
