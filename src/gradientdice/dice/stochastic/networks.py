"""Networks as a function class: each run has two of its own, and its own draws."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from gradientdice.base.errors import InputError
from gradientdice.dice.stochastic.function_class import Add, Players, Values
from gradientdice.dice.stochastic.initial import Init, UniformInit
from gradientdice.dice.stochastic.network import apply, init_layers
from gradientdice.dice.stochastic.network_source import Minibatch
from gradientdice.functions.mlp import MLP


@dataclass(frozen=True)
class NetworkClass:
    """Two multilayer perceptrons.

    Attributes:
        shape: their hidden layers and where they start.
        inputs: how many numbers describe a state and an action.
    """

    shape: MLP
    inputs: int

    shares_draws: ClassVar[bool] = False
    records_start: ClassVar[bool] = True
    # The time goes into matrix products, which are a library's: optimising the rest of a program never pays.
    quick_steps: ClassVar[int] = sys.maxsize

    @property
    def sizes(self) -> tuple[int, ...]:
        """The widths of all layers."""
        return (self.inputs, *self.shape.hidden, 1)

    @property
    def num_weights(self) -> int:
        """Weights and biases."""
        return sum(a * b + b for a, b in zip(self.sizes[:-1], self.sizes[1:], strict=True))

    @property
    def width(self) -> int:
        """The widest hidden layer."""
        return max(self.shape.hidden)

    def with_init(self, init: Init) -> NetworkClass:
        """An error unless it is the default: how networks start is a setting of theirs."""
        if init != UniformInit():
            raise InputError(
                f"init={init!r} is for tables and linear features. Where networks start is set in "
                "MLP(…, output_scale=…, ratio_start=…)."
            )
        return self

    def start(self, seed: Any, runs: tuple[int, ...]) -> Players:
        """The first parameters of one run."""
        assert runs == ()
        first, second = jax.random.split(jax.random.fold_in(jax.random.key(seed), 0))
        scale = self.shape.output_scale
        ratio = init_layers(first, self.sizes, scale, self.shape.ratio_start)
        return Players(ratio, init_layers(second, self.sizes, scale, 0.0), jnp.zeros(()))

    def at(self, players: Players, batch: Minibatch) -> tuple[Values, Add]:
        """The values on a minibatch, with one pass of the critic over everything that it is asked about."""
        width = batch.current.shape[-1]
        inputs = (batch.current, batch.following.reshape(-1, width), batch.initial.reshape(-1, width))
        ends = len(inputs[0]), len(inputs[0]) + len(inputs[1])

        def values(ratio: Any, critic: Any) -> Values:
            own, following, initial = jnp.split(apply(critic, jnp.concatenate(inputs)), ends)
            return Values(
                apply(ratio, batch.current),
                own,
                _expected(following, batch.following_weights),
                _expected(initial, batch.initial_weights),
            )

        found, pull_back = jax.vjp(values, players.ratio, players.critic)

        def add(onto: Players, amounts: Values) -> Players:
            ratio, critic = jax.tree.map(jnp.add, (onto.ratio, onto.critic), pull_back(amounts))
            return Players(ratio, critic, onto.norm_multiplier)

        return found, add

    def next_values(self, critic: Any, batch: Minibatch) -> Any:
        """A critic's mean values at the next states alone."""
        return _expected(apply(critic, batch.following.reshape(-1, self.inputs)), batch.following_weights)

    def outputs(self, params: Any, inputs: Any) -> Any:
        """A network's values at each row."""
        return apply(params, inputs)


def _expected(values: Any, weights: Any) -> Any:
    """The policy's mean over the actions or draws at each state."""
    return jnp.sum(values.reshape(weights.shape) * weights, axis=1)
