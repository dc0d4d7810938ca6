"""Algorithms of d3rlpy, with the scalers of observations and actions that they were trained with."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradientdice.base.errors import InputError
from gradientdice.base.extras import optional
from gradientdice.policies.adapters.options import Options
from gradientdice.policies.adapters.outputs import one_hot
from gradientdice.policies.adapters.seeding import torch_seeded
from gradientdice.policies.discrete import DiscretePolicy
from gradientdice.policies.sampling import SamplingPolicy

EXTRA = "d3rlpy"


def adapt(algo: Any, options: Options) -> DiscretePolicy | SamplingPolicy:
    """Greedy, as `predict` is, unless `deterministic=False` asks for its distribution."""
    options.only("an algorithm of d3rlpy", "deterministic")
    library = optional("d3rlpy", EXTRA)
    if not hasattr(algo, "sample_action"):
        raise InputError(
            f"{type(algo).__name__} of d3rlpy depends on more than the state: it cannot be evaluated from transitions."
        )
    if algo.impl is None:
        raise InputError("The algorithm has not been trained, or built: call fit, or build_with_dataset.")
    if algo.get_action_type() == library.ActionSpace.DISCRETE:
        return _discrete(algo, greedy=options.deterministic is not False)
    return _continuous(algo, greedy=options.deterministic is not False)


def _discrete(algo: Any, greedy: bool) -> DiscretePolicy:
    torch, count = optional("torch", EXTRA), int(algo.action_size)
    network = getattr(algo.impl.modules, "policy", None)
    if not greedy and network is None:
        raise InputError(f"{type(algo).__name__} has no distribution of actions, only a best one: deterministic=True.")

    def probabilities(states: np.ndarray) -> np.ndarray:
        observations = _observations(states)
        if greedy or network is None:
            return one_hot(algo.predict(observations), count)
        with torch.no_grad():
            tensor = torch.as_tensor(observations, device=next(network.parameters()).device)
            if algo.observation_scaler is not None:
                tensor = algo.observation_scaler.transform(tensor)
            return torch.softmax(network(tensor).logits.double(), dim=1).cpu().numpy()

    return DiscretePolicy(probabilities, count)


def _continuous(algo: Any, greedy: bool) -> SamplingPolicy:
    torch = optional("torch", EXTRA)

    def sample(states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if greedy:
            return algo.predict(_observations(states))
        with torch_seeded(torch, rng):
            return algo.sample_action(_observations(states))

    return SamplingPolicy(sample, draws=1 if greedy else None)


def _observations(states: np.ndarray) -> np.ndarray:
    return np.asarray(states, dtype=np.float32).reshape(len(states), -1)
