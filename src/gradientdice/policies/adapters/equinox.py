"""Modules of Equinox, which take one state at a time."""

from __future__ import annotations

from typing import Any

from gradientdice.base.errors import InputError
from gradientdice.policies.adapters.jax_outputs import from_network
from gradientdice.policies.adapters.options import Options
from gradientdice.policies.discrete import DiscretePolicy
from gradientdice.policies.sampling import SamplingPolicy


def adapt(module: Any, options: Options) -> DiscretePolicy | SamplingPolicy:
    """A module from one state to logits, probabilities or an action; dropout is switched off."""
    import equinox
    import jax

    options.only("a module of Equinox", "deterministic", "num_actions", "outputs", "normalizer")
    if not callable(module):
        raise InputError(f"The module {type(module).__name__} cannot be called.")
    return from_network(jax.vmap(equinox.nn.inference_mode(module)), options)
