"""Modules of Flax: Linen with its parameters, bound or in a train state, and NNX."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradientdice.base.errors import InputError
from gradientdice.base.extras import optional
from gradientdice.policies.adapters.jax_outputs import from_network
from gradientdice.policies.adapters.options import Options
from gradientdice.policies.discrete import DiscretePolicy
from gradientdice.policies.sampling import SamplingPolicy


def adapt(obj: Any, options: Options) -> DiscretePolicy | SamplingPolicy:
    """A module from a batch of states to logits, probabilities, actions or a distribution."""
    options.only("a module of Flax", "deterministic", "num_actions", "outputs", "params", "normalizer")
    optional("flax", "flax")
    if hasattr(obj, "apply_fn"):  # a train state
        variables = _variables(obj.params if options.params is None else options.params)
        return from_network(lambda states: obj.apply_fn(variables, states), options)
    if options.params is not None:
        variables = _variables(options.params)
        return from_network(lambda states: obj.apply(variables, states), options)
    if hasattr(obj, "scope") and obj.scope is None:
        raise InputError("A module of Flax Linen does not hold its parameters: give params=, or module.bind(…).")
    return from_network(obj, options)


def _variables(params: Any) -> Any:
    """Parameters as `apply` takes them, with or without the name of their collection."""
    return params if isinstance(params, Mapping) and "params" in params else {"params": params}
