"""Function classes of the learner: tables and linear features, and networks, with the same few methods.

Linear parameters have shape (K, runs): all hyper-parameters of a seed advance together on the same transitions, so that
a draw is one contiguous slice for all of them and comparisons between hyper-parameters are paired. Each run of
networks has two of its own, and its own draws. Where a learner starts is part of its function class: GenDICE's result
moves a lot with it, so results name it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from gradientdice.base.errors import InputError, require_count, require_number
from gradientdice.dice.stochastic.sources import Batch, Minibatch, seed_keys
from gradientdice.functions.mlp import MLP
from gradientdice.functions.rows import LearnerRows


class Players(NamedTuple):
    """The parameters of both functions and η.

    A table's or linear parameters have shape (K, *runs), η has shape runs; a network is a list of layers and one run.
    """

    ratio: Any
    critic: Any
    norm_multiplier: Any


class Values(NamedTuple):
    """The functions' values on a minibatch, (batch, *runs), or the objective's gradient at each of them."""

    raw: Any  # the ratio before its positive map
    critic: Any
    next_critic: Any
    initial_critic: Any


# Adds to parameters the gradient of Σ amounts · values, where the values are those of one minibatch.
Add = Callable[[Players, Values], Players]


class FunctionClass(Protocol):
    """A pair of parametric functions, τ and f.

    Attributes:
        shares_draws: whether the runs of one seed advance on the same draws as the last axis of shared arrays;
            otherwise each run has parameters and draws of its own.
        records_start: whether the learning curve begins before the first update.
        quick_steps: up to so many steps a run takes less time than optimising its program would.
    """

    shares_draws: ClassVar[bool]
    records_start: ClassVar[bool]
    quick_steps: ClassVar[int]

    @property
    def num_weights(self) -> int:
        """The number of parameters of one of the functions."""
        ...

    @property
    def width(self) -> int:
        """The size of the widest intermediate result for one row of a minibatch."""
        ...

    def with_init(self, init: Init) -> FunctionClass:
        """The function class with a solver's initial weights."""
        ...

    def start(self, seed: Any, runs: tuple[int, ...]) -> Players:
        """The first parameters of runs of one seed."""
        ...

    def at(self, players: Players, batch: Any) -> tuple[Values, Add]:
        """The values on a minibatch, and a function that adds amounts at each of them to the parameters."""
        ...

    def next_values(self, critic: Any, batch: Any) -> Any:
        """A critic's values at a minibatch's next states."""
        ...

    def outputs(self, params: Any, inputs: Any) -> Any:
        """One function's values at some rows of a log: (n, *runs)."""
        ...


@dataclass(frozen=True)
class UniformInit:
    """Weights from U(−1/√fan_in, 1/√fan_in), as PyTorch draws those of a linear layer.

    Attributes:
        fan_in: how many inputs the layer has; None is the number of features.
    """

    fan_in: int | None = None

    def __post_init__(self) -> None:
        if self.fan_in is not None:
            require_count("fan_in", self.fan_in)

    def draw(self, key: jax.Array, num_features: int) -> tuple[jax.Array, jax.Array]:
        """Uniform first parameters of the ratio and of the critic."""
        bound = 1 / math.sqrt(self.fan_in or num_features)
        both = jax.random.uniform(key, (2, num_features), minval=-bound, maxval=bound)
        return both[0], both[1]


@dataclass(frozen=True)
class ConstantInit:
    """All of the ratio's weights at one number, the critic's at another."""

    ratio: float = 1.0
    critic: float = 0.0

    def __post_init__(self) -> None:
        require_number("ratio", self.ratio)
        require_number("critic", self.critic)

    def draw(self, key: jax.Array, num_features: int) -> tuple[jax.Array, jax.Array]:
        """Constant first parameters of the ratio and of the critic."""
        return jnp.full(num_features, self.ratio), jnp.full(num_features, self.critic)


Init = UniformInit | ConstantInit


def require_init(init: object) -> None:
    """Raise unless this is one of the ways in which weights start."""
    if not isinstance(init, (UniformInit, ConstantInit)):
        raise InputError(f"init must be UniformInit(…) or ConstantInit(…), not {init!r:.60}.")


@dataclass(frozen=True)
class LinearClass:
    """Linear functions τ = x·w (before its positive map) and f = x·κ; a table has one feature for each pair.

    Attributes:
        num_features: K.
        init: where the weights start.
    """

    num_features: int
    init: Init = field(default_factory=UniformInit)

    shares_draws: ClassVar[bool] = True
    records_start: ClassVar[bool] = False
    quick_steps: ClassVar[int] = 5_000

    @property
    def num_weights(self) -> int:
        """The number of features, K."""
        return self.num_features

    @property
    def width(self) -> int:
        """One: a row of a minibatch becomes one number."""
        return 1

    def with_init(self, init: Init) -> LinearClass:
        """The linear functions with other initial weights."""
        return replace(self, init=init)

    def start(self, seed: Any, runs: tuple[int, ...]) -> Players:
        """The first parameters, equal for all runs of a seed."""
        init_key, _ = seed_keys(seed)
        shape = (self.num_features, *(1 for _ in runs))
        ratio, critic = (
            jnp.broadcast_to(weights.reshape(shape), (self.num_features, *runs))
            for weights in self.init.draw(init_key, self.num_features)
        )
        return Players(ratio, critic, jnp.zeros(runs))

    def at(self, players: Players, batch: Batch) -> tuple[Values, Add]:
        """The values on a minibatch; amounts at sparse rows change only the entries that these name."""

        def add(onto: Players, amounts: Values) -> Players:
            ratio = batch.current.add(onto.ratio, amounts.raw)
            critic = batch.current.add(onto.critic, amounts.critic)
            critic = batch.following.add(critic, amounts.next_critic)
            critic = batch.initial.add(critic, amounts.initial_critic)
            return Players(ratio, critic, onto.norm_multiplier)

        values = Values(
            batch.current.predict(players.ratio),
            batch.current.predict(players.critic),
            batch.following.predict(players.critic),
            batch.initial.predict(players.critic),
        )
        return values, add

    def next_values(self, critic: Any, batch: Batch) -> Any:
        """A linear critic's values at a minibatch's next states."""
        return batch.following.predict(critic)

    def outputs(self, params: Any, inputs: LearnerRows) -> Any:
        """Products x·params at each row."""
        return inputs.predict(params)


Layers = list[tuple[Any, Any]]


def init_layers(key: jax.Array, sizes: tuple[int, ...], output_scale: float, start: float) -> Layers:
    """Weights and biases from U(±1/√inputs), as PyTorch draws them; the last bias is moved to where outputs start."""
    layers = []
    for number, (inputs, outputs) in enumerate(zip(sizes[:-1], sizes[1:], strict=True)):
        bound = 1 / math.sqrt(inputs)
        weight_key, bias_key = jax.random.split(jax.random.fold_in(key, number))
        weight = jax.random.uniform(weight_key, (inputs, outputs), minval=-bound, maxval=bound)
        bias = jax.random.uniform(bias_key, (outputs,), minval=-bound, maxval=bound)
        layers.append((weight, bias))
    weight, bias = layers[-1]
    layers[-1] = (output_scale * weight, output_scale * bias + start)
    return layers


def apply(layers: Layers, inputs: Any) -> Any:
    """A network's outputs in JAX: (…, d) -> (…,)."""
    values = inputs
    for weight, bias in layers[:-1]:
        values = jax.nn.relu(jnp.matmul(values, weight, precision="highest") + bias)
    weight, bias = layers[-1]
    return (jnp.matmul(values, weight, precision="highest") + bias)[..., 0]


def predict(layers: Layers, inputs: np.ndarray) -> np.ndarray:
    """A network's outputs in NumPy, a chunk of rows at a time: (n, d) -> (n,)."""
    outputs = np.empty(len(inputs))
    for start in range(0, len(inputs), 65_536):
        values = inputs[start : start + 65_536]
        for weight, bias in layers[:-1]:
            values = np.maximum(values @ np.asarray(weight) + np.asarray(bias), 0)
        weight, bias = layers[-1]
        outputs[start : start + 65_536] = (values @ np.asarray(weight) + np.asarray(bias))[:, 0]
    return outputs


@dataclass(frozen=True)
class NetworkClass:
    """Two multilayer perceptrons, the ratio and the critic.

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
        """The number of weights and biases of one network."""
        return sum(a * b + b for a, b in zip(self.sizes[:-1], self.sizes[1:], strict=True))

    @property
    def width(self) -> int:
        """The widest hidden layer."""
        return max(self.shape.hidden)

    def with_init(self, init: Init) -> NetworkClass:
        """The networks themselves; raise unless the init is the default, since `MLP` says where networks start."""
        if init != UniformInit():
            raise InputError(
                f"init={init!r} is for tables and linear features. Where networks start is set in "
                "MLP(…, output_scale=…, ratio_start=…)."
            )
        return self

    def start(self, seed: Any, runs: tuple[int, ...]) -> Players:
        """The first parameters of one run of networks."""
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
        """A critic network's mean values at a minibatch's next states."""
        return _expected(apply(critic, batch.following.reshape(-1, self.inputs)), batch.following_weights)

    def outputs(self, params: Any, inputs: Any) -> Any:
        """A network's values at each row."""
        return apply(params, inputs)


def _expected(values: Any, weights: Any) -> Any:
    """The policy's mean over the actions or draws at each state."""
    return jnp.sum(values.reshape(weights.shape) * weights, axis=1)
