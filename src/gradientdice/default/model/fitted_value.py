"""V of the policy in the learned dynamics: a network fitted to simulated returns.

The network learns from returns that a constant continues after the last simulated step. Then θ, its last layer, is
solved for so that the fitted V = φ·θ continues the returns of the long paths itself,

    E[φ_t (φ_t − c_t φ_cut)ᵀ] θ = E[φ_t R_t],

and once more by least squares on all paths, which that V continues. Discounts near 1 then need no thousands of steps.
The short paths are left out of the first equations: c_t is near 1 there, and their states are not where the policy
stays, so that the system need not be positive definite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax
import numpy as np
from jaxtyping import Array, Float, Int

from gradientdice.base.compiling import quickly_compiled
from gradientdice.default.model.encoding import Encoding
from gradientdice.default.model.network import Network, closed_form_base, first_networks
from gradientdice.default.model.returns import ReturnSamples
from gradientdice.default.model.settings import ModelSettings
from gradientdice.default.model.training import Samples, batches_of, train
from gradientdice.estimators.doubly_robust.network_scores import simulated_discount

# For the last layer's equations, at most this many samples, and a ridge in units of the features' mean square.
SOLVED_SAMPLES = 20_000
LAYER_RIDGE = 1e-4
# A share of the paths is held out, and so many of their samples score a network.
HELD_OUT_SHARE = 0.1
CHECKED_SAMPLES = 4000


@dataclass(frozen=True, eq=False)
class FittedValues:
    """V for several discounts, one network for each fold.

    Attributes:
        networks: folds of them, stacked; an output for each discount, in units of `scale` around `center`.
        center: (folds, discounts).
        scale: (folds, discounts).
        low: (discounts,) the least that the rewards allow.
        high: (discounts,) the most.
    """

    networks: Network
    center: Float[np.ndarray, "f g"]
    scale: Float[np.ndarray, "f g"]
    low: Float[np.ndarray, " g"]
    high: Float[np.ndarray, " g"]

    def at(self, states: Float[np.ndarray, "j p s"]) -> Float[np.ndarray, "j p g"]:
        """V at states of each fold, or of each of its networks, those of a fold next to each other."""
        grouped = states.reshape(len(self.center), -1, states.shape[-1])
        raw = np.asarray(_outputs(self.networks, grouped), dtype=np.float64)
        found = np.clip(raw * self.scale[:, None] + self.center[:, None], self.low, self.high)
        return found.reshape(*states.shape[:2], -1)


def fit_values(
    samples: ReturnSamples, encoding: Encoding, discounts: Sequence[float], settings: ModelSettings, seed: int
) -> FittedValues:
    """Fits V to the samples of each fold, for all discounts at once.

    Args:
        samples: simulated returns.
        encoding: for the range of the rewards.
        discounts: of the values.
        settings: the size of the network and of its training.
        seed: for its first weights and for the order of the samples.
    """
    rng = np.random.default_rng([seed, 2])
    targets = samples.rewards + samples.factors * samples.levels[:, None]
    center, scale = targets.mean(axis=1), targets.std(axis=1)
    scale = np.where(scale > 0, scale, 1.0)
    low, high = np.array([_limits(encoding, discount) for discount in discounts]).T
    standardised = (targets - center[:, None]) / scale[:, None]
    everywhere = np.ones(standardised.shape[1:])
    base = [closed_form_base(*own, everywhere) for own in zip(samples.states, standardised, strict=True)]
    networks = first_networks(np.stack(base), settings.value_width, rng)
    networks = _trained(networks, samples, standardised, settings, rng)
    return _solved(FittedValues(networks, center, scale, low, high), samples, rng)


def _trained(
    networks: Network,
    samples: ReturnSamples,
    targets: Float[np.ndarray, "f n g"],
    settings: ModelSettings,
    rng: np.random.Generator,
) -> Network:
    """The networks after learning from returns; whole paths are held out to stop early."""
    folds, count = targets.shape[:2]
    paths = int(samples.path.max()) + 1
    batches, checks = [], []
    for fold in range(folds):
        apart = np.isin(samples.path, rng.permutation(paths)[: max(1, round(HELD_OUT_SHARE * paths))])
        seen, unseen = np.flatnonzero(~apart), np.flatnonzero(apart)
        # All folds' samples are one array, so that the networks share the compiled program.
        batches.append(fold * count + batches_of(seen, np.ones(len(seen)), settings.value_steps, settings.batch, rng))
        checks.append((fold * count + rng.choice(unseen, size=CHECKED_SAMPLES)).astype(np.int32))
    flat = targets.reshape(folds * count, -1).astype(np.float32)
    rows = Samples(samples.states.reshape(folds * count, -1), flat, np.ones_like(flat))
    networks, _ = train(networks, rows, np.stack(batches), np.stack(checks))
    return jax.tree.map(np.asarray, networks)


def _solved(values: FittedValues, samples: ReturnSamples, rng: np.random.Generator) -> FittedValues:
    """The same with the last layers solved for."""
    for rows, continues in ((np.flatnonzero(samples.long), True), (np.arange(len(samples.long)), False)):
        chosen = rng.permutation(rows)[:SOLVED_SAMPLES]
        values = _with_layers(values, samples, chosen, continues)
    return values


def _with_layers(
    values: FittedValues, samples: ReturnSamples, chosen: Int[np.ndarray, " m"], continues: bool
) -> FittedValues:
    features = (_features(values.networks, states[:, chosen]) for states in (samples.states, samples.last))
    now, after = (np.asarray(part, dtype=np.float64) for part in features)
    old = np.concatenate([values.networks.weight, values.networks.base], axis=1).astype(np.float64)
    layers = np.empty_like(old)
    for fold in range(len(now)):
        for column in range(samples.rewards.shape[2]):
            center, scale = values.center[fold, column], values.scale[fold, column]
            factor = samples.factors[fold, chosen, column]
            reward = (samples.rewards[fold, chosen, column] - (1 - factor) * center) / scale
            layer, following = old[fold, :, column], factor[:, None] * after[fold]
            error = reward + following @ layer - now[fold] @ layer
            moving = now[fold] - following if continues else now[fold]
            layers[fold, :, column] = layer + _change(now[fold], moving, error)
    width = values.networks.weight.shape[1]
    new = layers.astype(np.float32)
    return replace(values, networks=replace(values.networks, base=new[:, width:], weight=new[:, :width]))


def _change(
    now: Float[np.ndarray, "n m"], moving: Float[np.ndarray, "n m"], error: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " m"]:
    """The change of a layer that makes the error orthogonal to the features; small where they do not tell."""
    ridge = np.full(now.shape[1], LAYER_RIDGE * np.mean(now**2))
    ridge[-1] = 0.0  # the constant carries the level
    return np.linalg.solve(now.T @ moving / len(now) + np.diag(ridge), now.T @ error / len(now))


def _limits(encoding: Encoding, discount: float) -> tuple[float, float]:
    """What the rewards allow a value to be; below discount 1 an episode ends once, and after that there is nothing."""
    low, high = encoding.reward_range
    at_end = min(encoding.end_reward, 0.0), max(encoding.end_reward, 0.0)
    left = 1 - simulated_discount(discount)
    if discount == 1:
        return (low + at_end[0]) / left, (high + at_end[1]) / left
    if encoding.ends:
        low, high = min(low, 0.0), max(high, 0.0)
    return low / left + at_end[0], high / left + at_end[1]


@quickly_compiled()
def _features(networks: Network, states: Float[Array, "f n s"]) -> Float[Array, "f n m"]:
    return jax.vmap(lambda network, rows: network.features(rows))(networks, states)


@quickly_compiled()
def _outputs(networks: Network, states: Float[Array, "f n s"]) -> Float[Array, "f n g"]:
    return jax.vmap(lambda network, rows: network(rows))(networks, states)
