"""An ensemble of networks for each fold, none of which saw the fold: dynamics, reward and end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from gradientdice.default.model.encoding import Encoding
from gradientdice.default.model.ends import EndOdds
from gradientdice.default.model.network import Network
from gradientdice.default.model.noise import LocalNoise


class LearnedStep(eqx.Module):
    """One step of all networks."""

    networks: Network
    units: Units
    ends: EndOdds | None
    noise: LocalNoise | None

    def __call__(self, states: Any, actions: Any, draws: Any) -> tuple[Any, Any, Any, Any]:
        """Next states, rewards, probabilities of an end, and whether the log's range would have been left.

        Args:
            states: (j, p, s) standardised, for each network.
            actions: (j, p, k) as inputs.
            draws: (j, p) numbers of the noise's draws, below `DRAWS`.
        """
        return jax.vmap(self._one)(self.networks, self.ends, self.noise, states, actions, draws)

    def _one(self, network: Network, ends: Any, local: Any, states: Any, actions: Any, draws: Any) -> Any:
        features = network.features(jnp.concatenate([states, actions], axis=1))
        outputs = network.of_features(features)
        noise = 0.0 if local is None else local(features, draws)
        following, reward, left = self.units.follow(states, outputs, noise)
        if ends is None:
            return following, reward, jnp.zeros_like(reward), left
        end = jax.nn.sigmoid(ends(self.units.expected(states, outputs), outputs[:, -1]))
        return following, reward + end * self.units.end_reward, end, left


class Units(eqx.Module):
    """The networks' units as arrays for compiled functions; see `Encoding`."""

    change_center: Float[Array, " s"]
    change_scale: Float[Array, " s"]
    reward_center: Float[Array, ""]
    reward_scale: Float[Array, ""]
    end_reward: Float[Array, ""]
    reward_low: Float[Array, ""]
    reward_high: Float[Array, ""]
    low: Float[Array, " s"]
    high: Float[Array, " s"]

    @classmethod
    def of(cls, encoding: Encoding) -> Units:
        """The units of a log."""
        return cls(
            *(
                jnp.asarray(number, dtype=jnp.float32)
                for number in (
                    encoding.change_center,
                    encoding.change_scale,
                    encoding.reward_center,
                    encoding.reward_scale,
                    encoding.end_reward,
                    *encoding.reward_range,
                    encoding.low,
                    encoding.high,
                )
            )
        )

    def expected(self, states: Float[Array, "n s"], outputs: Float[Array, "n k"]) -> Float[Array, "n s"]:
        """Next states without noise."""
        return states + outputs[:, : states.shape[1]] * self.change_scale + self.change_center

    def follow(
        self, states: Float[Array, "n s"], outputs: Float[Array, "n k"], noise: Any
    ) -> tuple[Float[Array, "n s"], Float[Array, " n"], Bool[Array, " n"]]:
        """Next states, rewards, and whether the next state would have left the log's range, in which it is kept."""
        size = states.shape[1]
        reward = outputs[:, size] * self.reward_scale + self.reward_center
        following = self.expected(states, outputs) + noise * self.change_scale
        kept = jnp.clip(following, self.low, self.high)
        return kept, jnp.clip(reward, self.reward_low, self.reward_high), jnp.any(kept != following, axis=1)


@dataclass(frozen=True, eq=False)
class Dynamics:
    """The trained networks, those of a fold next to each other.

    Attributes:
        encoding: of states and actions.
        networks: folds × members of them, stacked.
        noise: of changes; None where the dynamics are deterministic.
        error_share: the held-out error's share of the variance, over changes and rewards.
        members: networks per fold.
        ends: when episodes end; None if none did.
    """

    encoding: Encoding
    networks: Network
    noise: LocalNoise | None
    error_share: float
    members: int
    ends: EndOdds | None

    @property
    def step(self) -> LearnedStep:
        """A step of all networks."""
        return LearnedStep(self.networks, Units.of(self.encoding), self.ends, self.noise)
