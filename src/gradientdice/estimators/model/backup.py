"""Q and V of a fold from one step of its networks and the fitted value of what follows:

    Q(s,a) = r̂(s,a) + γ (1 − p_end(s,a)) E V_φ(ŝ'),     V(s) = Σ_a π(a|s) Q(s,a),

the mean over the ensemble's members and, where the dynamics are noisy, over fixed draws of the noise. Both are the same
function Q: V is its mean under the policy, exact for discrete actions and over several draws else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from gradientdice.estimators.model.dynamics import Dynamics, Units
from gradientdice.estimators.model.fitted_value import FittedValues
from gradientdice.estimators.model.network import Network
from gradientdice.estimators.model.returns import simulated_discount

# Rows in one compiled call: all calls have this shape.
CHUNK = 8192
# Where the dynamics are noisy: so many draws, each with its negative, so that their mean is 0.
NOISE_PAIRS = 2


class _Fold(eqx.Module):
    """A fold's networks and value."""

    networks: Network
    value: Network
    center: Float[Array | np.ndarray, " g"]
    scale: Float[Array | np.ndarray, " g"]
    low: Float[Array | np.ndarray, " g"]
    high: Float[Array | np.ndarray, " g"]
    discounts: Float[Array | np.ndarray, " g"]
    restart: Float[Array | np.ndarray, " g"]  # the value after an end
    noise: Float[Array | np.ndarray, "e s"]
    units: Units

    def fitted(self, states: Float[Array, "n s"]) -> Float[Array, "n g"]:
        """V_φ, kept to what the rewards allow."""
        return jnp.clip(self.value(states) * self.scale + self.center, self.low, self.high)

    def pairs(self, inputs: Float[Array, "n d"], ends: bool) -> Float[Array, "n g"]:
        """Q at standardised pairs."""
        states = inputs[:, : self.units.low.shape[0]]

        def member(network: Network) -> Float[Array, "n g"]:
            outputs = network(inputs)
            end = jax.nn.sigmoid(outputs[:, -1:]) if ends else jnp.zeros((len(inputs), 1))

            def drawn(noise: Float[Array, " s"]) -> Float[Array, "n g"]:
                following, reward, _ = self.units.follow(
                    states, outputs, jnp.broadcast_to(noise, (len(states), len(noise)))
                )
                return reward[:, None] + self.discounts * ((1 - end) * self.fitted(following) + end * self.restart)

            return jnp.mean(jax.lax.map(drawn, self.noise), axis=0)

        return jnp.mean(jax.lax.map(member, self.networks), axis=0)


@eqx.filter_jit
def _pairs(fold: _Fold, inputs: Any, ends: bool) -> Float[Array, "n g"]:
    return fold.pairs(inputs, ends)


@eqx.filter_jit
def _fitted(fold: _Fold, states: Any) -> Float[Array, "n g"]:
    return fold.fitted(states)


@dataclass(frozen=True, eq=False)
class FoldQ:
    """Q of the networks that did not see one fold, for several discounts."""

    dynamics: Dynamics
    fold: _Fold

    @classmethod
    def of(
        cls, dynamics: Dynamics, values: FittedValues, number: int, discounts: Sequence[float], restarts: np.ndarray
    ) -> FoldQ:
        """The Q of fold `number`.

        Args:
            dynamics: the networks of all folds.
            values: the fitted values of all folds.
            number: of the fold.
            discounts: of the values.
            restarts: initial states, standardised, whose mean value follows an end at discount 1.
        """
        noise = dynamics.noise[number]
        if dynamics.is_noisy:
            drawn = noise[: 2 * NOISE_PAIRS : 2]
            noise = np.concatenate([drawn, -drawn])
        else:
            noise = noise[:1]

        def single(array: Any) -> Any:
            return np.asarray(array, dtype=np.float32)

        fold = _Fold(
            networks=dynamics.of_fold(number),
            value=jax.tree.map(lambda array: array[number], values.networks),
            center=single(values.center[number]),
            scale=single(values.scale[number]),
            low=single(values.low),
            high=single(values.high),
            discounts=single([simulated_discount(discount) for discount in discounts]),
            restart=single(np.zeros(len(discounts))),
            noise=single(noise),
            units=Units.of(dynamics.encoding),
        )
        if dynamics.encoding.ends and 1 in discounts:
            mean = np.asarray(_fitted(fold, restarts)).mean(axis=0)
            fold = replace(fold, restart=np.where(np.asarray(discounts) == 1, mean, single(0.0)))
        return cls(dynamics, fold)

    def pairs(self, inputs: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n g"]:
        """Q at encoded pairs, in chunks of one shape."""
        found = np.empty((len(inputs), len(self.fold.discounts)))
        for start in range(0, len(inputs), CHUNK):
            part = inputs[start : start + CHUNK]
            padded = np.zeros((CHUNK, inputs.shape[1]), dtype=np.float32)
            padded[: len(part)] = part
            found[start : start + CHUNK] = np.asarray(_pairs(self.fold, padded, self.dynamics.encoding.ends))[
                : len(part)
            ]
        return found
