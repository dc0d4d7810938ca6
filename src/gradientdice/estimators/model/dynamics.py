"""An ensemble of networks for each fold, none of which saw the fold: dynamics, reward and end.

The noise of the simulation is that of rows held out from training. A network's error there is noise and its own
inaccuracy; the errors of two networks at the same row share the noise only, so that the mean of their product is the
noise's variance. Where that is below a twentieth of the target's variance the dynamics count as deterministic.
Rewards get no noise: it would change no expected return.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from gradientdice.estimators.model.encoding import Encoding
from gradientdice.estimators.model.network import Network, closed_form_base, first_networks
from gradientdice.estimators.model.settings import ModelSettings
from gradientdice.estimators.model.training import Samples, batches_of, train
from gradientdice.problem.folds import Folds
from gradientdice.problem.problem import Problem
from gradientdice.solvers.stochastic.devices import shared_evenly

# Of the rows that a fold's networks may see, this share is held out to stop early and to measure the noise.
HELD_OUT_SHARE = 0.1
HELD_OUT_ROWS = 2000
# With fewer units than this rows are held out instead of whole episodes.
FEWEST_UNITS = 10
# Errors that networks share are also what none of them can learn: in contact-rich deterministic tasks up to 3%.
NOISE_FLOOR = 0.05


class LearnedStep(eqx.Module):
    """One step of all networks."""

    networks: Network
    units: Units
    ends: bool = eqx.field(static=True)

    def __call__(self, states: Any, actions: Any, noise: Any) -> tuple[Any, Any, Any, Any]:
        """Next states, rewards, probabilities of an end, and whether the log's range would have been left.

        Args:
            states: (j, p, s) standardised, for each network.
            actions: (j, p, k) as inputs.
            noise: (j, p, s) in the networks' units.
        """
        return jax.vmap(self._one)(self.networks, states, actions, noise)

    def _one(self, network: Network, states: Any, actions: Any, noise: Any) -> Any:
        outputs = network(jnp.concatenate([states, actions], axis=1))
        following, reward, left = self.units.follow(states, outputs, noise)
        if not self.ends:
            return following, reward, jnp.zeros_like(reward), left
        end = jax.nn.sigmoid(outputs[:, -1])
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

    def follow(
        self, states: Float[Array, "n s"], outputs: Float[Array, "n k"], noise: Float[Array, "n s"]
    ) -> tuple[Float[Array, "n s"], Float[Array, " n"], Bool[Array, " n"]]:
        """Next states, rewards, and whether the next state would have left the log's range, in which it is kept."""
        size = states.shape[1]
        change = (outputs[:, :size] + noise) * self.change_scale + self.change_center
        reward = outputs[:, size] * self.reward_scale + self.reward_center
        following = states + change
        kept = jnp.clip(following, self.low, self.high)
        return kept, jnp.clip(reward, self.reward_low, self.reward_high), jnp.any(kept != following, axis=1)


@dataclass(frozen=True, eq=False)
class Dynamics:
    """The trained networks, those of a fold next to each other.

    Attributes:
        encoding: of states and actions.
        networks: folds × members of them, stacked.
        noise: (folds, rows, s) draws of the noise of changes, in the networks' units; 0 where the dynamics are
            deterministic.
        error_share: the held-out error's share of the variance, over changes and rewards.
        members: networks per fold.
    """

    encoding: Encoding
    networks: Network
    noise: Float[np.ndarray, "f m s"]
    error_share: float
    members: int

    @property
    def is_noisy(self) -> bool:
        """Whether the simulation has noise."""
        return bool(self.noise.any())

    @property
    def step(self) -> LearnedStep:
        """A step of all networks."""
        return LearnedStep(self.networks, Units.of(self.encoding), self.encoding.ends)


def learn_dynamics(problem: Problem, encoding: Encoding, folds: Folds, settings: ModelSettings) -> Dynamics:
    """Trains all ensembles in one program."""
    data, rng = problem.data, np.random.default_rng(problem.seed)
    samples, weights = encoding.samples(data), data.row_weights
    steps = settings.steps_for(len(data))
    rows, batches = [], []
    for fold in range(folds.count):
        seen, unseen = _split(problem, folds.rows != fold, rng)
        for _ in range(settings.members):
            rows.append((seen, unseen))
            batches.append(batches_of(seen, weights[seen], steps, settings.batch, rng))
    checks, drawn = np.stack([unseen for _, unseen in rows]), np.stack(batches)
    base = [_base(samples, seen, weights, encoding.ends) for seen, _ in rows]
    first = first_networks(np.stack(base), settings.width, rng)
    # Several devices train as many networks each, where they divide them.
    first, drawn, checks_placed = shared_evenly((first, drawn, checks))
    networks, outputs = train(first, samples, drawn, checks_placed, encoding.ends)
    errors = _held_out_errors(np.asarray(outputs), samples, checks, encoding.state_size)
    grouped = errors.reshape(folds.count, settings.members, *errors.shape[1:])
    noise = np.stack([_noise(own[..., :-1]) for own in grouped])
    share = float(np.mean(errors**2))
    return Dynamics(encoding, jax.tree.map(np.asarray, networks), noise, share, settings.members)


def _split(
    problem: Problem, allowed: Bool[np.ndarray, " n"], rng: np.random.Generator
) -> tuple[Int[np.ndarray, " m"], Int[np.ndarray, " h"]]:
    """Rows to train on, and rows of other episodes to stop early by: always the same number of those."""
    units = problem.data.units.rows
    rows = np.flatnonzero(allowed & (units >= 0))
    own = np.unique(units[rows])
    if len(own) < FEWEST_UNITS:
        apart = rng.random(len(rows)) < HELD_OUT_SHARE
    else:
        chosen = rng.permutation(own)[: max(1, round(HELD_OUT_SHARE * len(own)))]
        apart = np.isin(units[rows], chosen)
    if not apart.any() or apart.all():
        apart = np.arange(len(rows)) == len(rows) - 1
    unseen, seen = rows[apart], rows[~apart] if len(rows) > 1 else rows
    size = min(HELD_OUT_ROWS, len(problem.data))
    drawn = rng.choice(unseen, size=size, replace=len(unseen) < size)
    return seen, drawn.astype(np.int32)


def _base(samples: Samples, rows: np.ndarray, weights: np.ndarray, ends: bool) -> Float[np.ndarray, "m k"]:
    base = closed_form_base(samples.inputs[rows], samples.targets[rows], samples.weights[rows] * weights[rows, None])
    if ends:
        # The log-odds of an end begin at those of all rows; half an end is added, for a fold without any.
        ended = float(samples.targets[rows, -1] @ weights[rows])
        total = float(weights[rows].sum())
        base[:, -1] = 0.0
        base[-1, -1] = np.log((ended + 0.5) / (total - ended + 0.5))
    return base


def _held_out_errors(
    outputs: Float[np.ndarray, "j m k"], samples: Samples, checks: Int[np.ndarray, "j m"], size: int
) -> Float[np.ndarray, "j m c"]:
    """Target less output of changes and rewards at held-out rows; 0 where the target is not known."""
    known = slice(0, size + 1)
    return (samples.targets[checks][..., known] - outputs[..., known]) * samples.weights[checks][..., known]


def _noise(errors: Float[np.ndarray, "members m s"]) -> Float[np.ndarray, "m s"]:
    """Errors of the ensemble's mean, scaled in each dimension to the variance of the noise."""
    mean = errors.mean(axis=0)
    mean = mean - mean.mean(axis=0)
    pairs = list(combinations(range(len(errors)), 2)) or [(0, 0)]
    shared = np.mean([np.mean(errors[a] * errors[b], axis=0) for a, b in pairs], axis=0)
    shared = np.where(shared > NOISE_FLOOR, shared, 0.0)
    own = np.mean(mean**2, axis=0)
    return (mean * np.sqrt(shared / np.where(own > 0, own, 1.0))).astype(np.float32)
