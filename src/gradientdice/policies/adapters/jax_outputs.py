"""What networks in JAX return, as policies that a simulation can compile with the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradientdice.base.errors import InputError
from gradientdice.policies.adapters.options import Options
from gradientdice.policies.discrete import DiscretePolicy
from gradientdice.policies.sampling import SamplingPolicy


def from_network(network: Callable[[Any], Any], options: Options) -> DiscretePolicy | SamplingPolicy:
    """A function from a batch of states to logits, probabilities, actions, or a distribution of distrax or TFP."""
    import jax
    import jax.numpy as jnp

    prepare = options.normalizer or (lambda states: states)
    count, outputs, deterministic = options.num_actions, options.outputs, bool(options.deterministic)

    def call(states: Any) -> Any:
        states = jnp.asarray(states)
        return network(prepare(states if states.dtype.kind != "f" else states.astype(jnp.float32)))

    if count is None:
        return _continuous(call, deterministic)

    def probabilities(states: Any) -> Any:
        returned = call(states)
        if hasattr(returned, "sample"):
            found = jax.nn.softmax(_logits(returned), axis=-1)
        elif returned.ndim == 1 and outputs in (None, "actions"):
            return jax.nn.one_hot(returned, count)
        elif outputs in ("logits", "probabilities"):
            found = jax.nn.softmax(returned, axis=-1) if outputs == "logits" else returned
        else:
            raise InputError(
                'Say what the network returns for each action: outputs="logits" or outputs="probabilities".'
            )
        return jax.nn.one_hot(found.argmax(axis=-1), count) if deterministic else found

    return DiscretePolicy(probabilities, count, jax=True)


def _continuous(call: Callable[[Any], Any], deterministic: bool) -> SamplingPolicy:
    def sample(states: Any, key: Any) -> Any:
        returned = call(states)
        if not hasattr(returned, "sample"):
            return returned
        return returned.mode() if deterministic else returned.sample(seed=key)

    return SamplingPolicy(sample, draws=1 if deterministic else None, jax=True)


def _logits(distribution: Any) -> Any:
    """The logits of a distribution of distrax (an attribute) or TFP (a method)."""
    found = getattr(distribution, "logits_parameter", None)
    logits = found() if found is not None else getattr(distribution, "logits", None)
    if logits is None:
        raise InputError(f"The network returns a {type(distribution).__name__}, which has no probabilities.")
    return logits
