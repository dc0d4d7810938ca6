"""Algorithms and policies of Stable-Baselines3.

Observations are normalised as the algorithm's own `VecNormalize` does; actions are squashed, scaled and clipped by the
policy's `predict` itself, so that they are those that the environment would get.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradientdice.base.errors import InputError
from gradientdice.base.extras import optional
from gradientdice.log.formats.observations import as_observations, size_of
from gradientdice.policies.adapters.options import Options
from gradientdice.policies.adapters.outputs import one_hot, softmax
from gradientdice.policies.adapters.seeding import torch_seeded
from gradientdice.policies.discrete import DiscretePolicy
from gradientdice.policies.sampling import SamplingPolicy

EXTRA = "sb3"
Prepare = Callable[[np.ndarray], Any]


def adapt(obj: Any, options: Options) -> DiscretePolicy | SamplingPolicy:
    """Probabilities where actions are one whole number, else sampled actions."""
    options.only("a policy of Stable-Baselines3", "deterministic", "normalizer")
    optional("stable_baselines3", EXTRA)
    network = getattr(obj, "policy", obj)
    if hasattr(network, "lstm_actor"):
        raise InputError("A recurrent policy depends on more than the state: it cannot be evaluated from transitions.")
    prepare = preparation(obj, network, options.normalizer)
    if type(network.action_space).__name__ == "Discrete":
        logits = _logits if hasattr(network, "get_distribution") else None
        return discrete(obj, network, prepare, logits, options.deterministic)
    return continuous(network, prepare, options.deterministic)


def preparation(obj: Any, network: Any, normalizer: Any) -> Prepare:
    """From the log's states to what the network is given."""
    space = network.observation_space
    size_of(space)  # images are refused here
    if normalizer is None and hasattr(obj, "get_vec_normalize_env"):
        normalizer = obj.get_vec_normalize_env()
    if normalizer is None:
        return lambda states: as_observations(space, states)
    normalise = getattr(normalizer, "normalize_obs", normalizer)
    return lambda states: normalise(as_observations(space, states))


def discrete(
    obj: Any,
    network: Any,
    prepare: Prepare,
    logits: Callable[[Any, Any], np.ndarray] | None,
    deterministic: bool | None,
) -> DiscretePolicy:
    """The network's own distribution, if it has logits; else its best action with the algorithm's exploration."""
    space = network.action_space
    count = int(space.n)
    # Algorithms over Q-values draw a random action so often when they are not asked to be deterministic.
    exploration = 0.0 if deterministic else float(getattr(obj, "exploration_rate", 0.0))

    def probabilities(states: np.ndarray) -> np.ndarray:
        observations = prepare(states)
        if logits is not None and not deterministic:
            return softmax(logits(network, observations))
        best, _ = network.predict(observations, deterministic=True)
        # A space of actions may begin elsewhere than at 0; the log's first action is 0.
        greedy = one_hot(np.asarray(best).reshape(len(states)) - int(getattr(space, "start", 0)), count)
        return (1 - exploration) * greedy + exploration / count

    return DiscretePolicy(probabilities, count)


def continuous(network: Any, prepare: Prepare, deterministic: bool | None) -> SamplingPolicy:
    """Actions as `predict` gives them to the environment."""
    torch = optional("torch", EXTRA)

    def sample(states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        with torch_seeded(torch, rng):
            actions, _ = network.predict(prepare(states), deterministic=bool(deterministic))
        return np.asarray(actions).reshape(len(states), -1)

    return SamplingPolicy(sample, draws=1 if deterministic else None)


def _logits(network: Any, observations: Any) -> np.ndarray:
    torch = optional("torch", EXTRA)
    network.set_training_mode(False)
    with torch.no_grad():
        tensor, _ = network.obs_to_tensor(observations)
        return network.get_distribution(tensor).distribution.logits.cpu().numpy()
