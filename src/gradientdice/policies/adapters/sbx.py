"""Algorithms of SBX, which are those of Stable-Baselines3 with networks in JAX."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradientdice.base.extras import optional
from gradientdice.policies.adapters.options import Options
from gradientdice.policies.adapters.stable_baselines3 import EXTRA, Prepare, discrete, preparation
from gradientdice.policies.discrete import DiscretePolicy
from gradientdice.policies.sampling import SamplingPolicy


def adapt(obj: Any, options: Options) -> DiscretePolicy | SamplingPolicy:
    """Probabilities where actions are one whole number, else sampled actions."""
    options.only("a policy of SBX", "deterministic", "normalizer")
    optional("sbx", EXTRA)
    network = getattr(obj, "policy", obj)
    prepare = preparation(obj, network, options.normalizer)
    if type(network.action_space).__name__ == "Discrete":
        logits = _logits if hasattr(network, "actor_state") else None
        return discrete(obj, network, prepare, logits, options.deterministic)
    return _continuous(network, prepare, options.deterministic)


def _continuous(network: Any, prepare: Prepare, deterministic: bool | None) -> SamplingPolicy:
    """Actions as `predict` gives them to the environment, drawn with a key that follows the generator."""
    jax = optional("jax", EXTRA)

    def sample(states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        observations = prepare(states)
        if not deterministic and hasattr(network, "key"):
            network.key = network.noise_key = jax.random.PRNGKey(int(rng.integers(2**31)))
        actions, _ = network.predict(observations, deterministic=bool(deterministic))
        return np.asarray(actions).reshape(len(states), -1)

    return SamplingPolicy(sample, draws=1 if deterministic else None)


def _logits(network: Any, observations: Any) -> np.ndarray:
    prepared, _ = network.prepare_obs(observations)
    state = network.actor_state
    return np.asarray(state.apply_fn(state.params, prepared).logits_parameter())
