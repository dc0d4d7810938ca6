"""Tables and linear features as a function class: parameters (K, runs), changed only where a minibatch has features.

All hyper-parameters of a seed advance together on the same transitions: a draw is then one contiguous slice for all of
them, and comparisons between hyper-parameters are paired.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import jax.numpy as jnp

from gradientdice.dice.stochastic.function_class import Add, Players, Values
from gradientdice.dice.stochastic.initial import Init, UniformInit
from gradientdice.dice.stochastic.sources import Batch, seed_keys
from gradientdice.functions.rows import LearnerRows


@dataclass(frozen=True)
class LinearClass:
    """τ = x·w (before its positive map) and f = x·κ.

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
        """K."""
        return self.num_features

    @property
    def width(self) -> int:
        """A row of a minibatch becomes one number."""
        return 1

    def with_init(self, init: Init) -> LinearClass:
        """With other initial weights."""
        return replace(self, init=init)

    def start(self, seed: Any, runs: tuple[int, ...]) -> Players:
        """The first parameters, the same for all runs of a seed."""
        init_key, _ = seed_keys(seed)
        shape = (self.num_features, *(1 for _ in runs))
        ratio, critic = (
            jnp.broadcast_to(weights.reshape(shape), (self.num_features, *runs))
            for weights in self.init.draw(init_key, self.num_features)
        )
        return Players(ratio, critic, jnp.zeros(runs))

    def at(self, players: Players, batch: Batch) -> tuple[Values, Add]:
        """The values on a minibatch; sparse rows then change only the entries that they name."""

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
        """A critic's values at the next states alone."""
        return batch.following.predict(critic)

    def outputs(self, params: Any, inputs: LearnerRows) -> Any:
        """x·params at each row."""
        return inputs.predict(params)
