"""Recognises what a policy is made of, by the names of the modules its class comes from."""

from __future__ import annotations

import importlib
from typing import Any

from gradientdice.base.errors import InputError
from gradientdice.base.extras import frameworks_of
from gradientdice.policies import DiscretePolicy, LoggedPolicy, Policy, SamplingPolicy, TabularPolicy
from gradientdice.policies.adapters import functions, tables
from gradientdice.policies.adapters.options import Options

# The library of an object's class -> the module here that adapts it; none is imported before it is needed.
FRAMEWORKS = {
    "sbx": "sbx",
    "stable_baselines3": "stable_baselines3",
    "d3rlpy": "d3rlpy",
    "flax": "flax",
    "equinox": "equinox",
    "sklearn": "sklearn",
    "torch": "torch",
}


def policy(
    obj: Any,
    *,
    deterministic: bool | None = None,
    num_actions: int | None = None,
    outputs: str | None = None,
    params: Any = None,
    normalizer: Any = None,
) -> Policy:
    """Makes a policy of an object: an algorithm, a network, a classifier, a function, a table.

    What a framework does before and after its network is done here too: normalising observations, squashing, scaling
    and clipping actions.

    Args:
        obj: an algorithm of Stable-Baselines3, SBX or d3rlpy; a module of PyTorch, Flax or Equinox; a classifier or
            regressor of scikit-learn; a function of a batch of states (and a NumPy generator, if it draws actions); a
            table of probabilities (states, actions), or of one action per state.
        deterministic: whether it takes its most likely action. Left out, it does what the framework's own `predict`
            does: Stable-Baselines3 draws, d3rlpy is greedy; classifiers, functions and networks draw.
        num_actions: how many actions there are, for functions and networks over discrete actions. A rule that returns
            one action per state, as the log's code or word, needs none: on a log of discrete actions it is the
            deterministic policy that takes them.
        outputs: what a network returns for discrete actions: "logits", "probabilities", or "actions" (their numbers).
        params: the parameters of a Flax module that does not hold them.
        normalizer: what states go through first: a `VecNormalize`, or a function. That of a Stable-Baselines3
            algorithm's own environment is used without asking.

    Raises:
        InputError: if the object is not recognised, or more must be said about it.

    Example:
        >>> import gradientdice as gd
        >>> gd.policy([[0.1, 0.9], [0.5, 0.5]])
        TabularPolicy(probabilities=array([[0.1, 0.9], [0.5, 0.5]]))
        >>> import numpy as np
        >>> gd.policy(
        ...     lambda states: (states[:, 0] > 0).astype(int), num_actions=2
        ... ).probabilities_at(np.ones((1, 1)))
        array([[0., 1.]])
    """
    options = Options(deterministic, num_actions, outputs, params, normalizer)
    if isinstance(obj, (TabularPolicy, DiscretePolicy, SamplingPolicy, LoggedPolicy)):
        options.only("a policy of this library")
        return obj
    if isinstance(obj, type):
        raise InputError(f"No policy can be made of the class {obj.__name__}: give an object of it.")
    for library in frameworks_of(obj):
        if library in FRAMEWORKS:
            return importlib.import_module(f"gradientdice.policies.adapters.{FRAMEWORKS[library]}").adapt(obj, options)
    if callable(obj):
        return functions.adapt(obj, options)
    if hasattr(obj, "__array__") or isinstance(obj, (list, tuple)):
        return tables.adapt(obj, options)
    raise InputError(
        f"No policy can be made of {type(obj).__name__}: give an algorithm, a network, a classifier, a function of "
        "states, or a table of probabilities."
    )
