"""Learning a model: networks for each fold that did not see it, then when episodes end, and the noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from gradientdice.base.compiling import quickly_compiled
from gradientdice.base.devices import shared_evenly
from gradientdice.default.model.dynamics import Dynamics, Units
from gradientdice.default.model.encoding import Encoding
from gradientdice.default.model.ends import EndOdds, learn_ends, stacked_odds
from gradientdice.default.model.network import Network, closed_form_base, first_networks
from gradientdice.default.model.noise import LocalNoise, NoisyRows, local_noise, noisy_numbers, stacked_noise
from gradientdice.default.model.settings import ModelSettings
from gradientdice.default.model.training import Samples, batches_of, train
from gradientdice.problem.folds import Folds
from gradientdice.problem.problem import Problem

# Of the rows that a fold's networks may see, this share is held out to stop early and to measure the noise.
HELD_OUT_SHARE = 0.1
HELD_OUT_ROWS = 2000
# With fewer units than this rows are held out instead of whole episodes.
FEWEST_UNITS = 10
# Rows from which the size of the errors is learned.
SIZED_ROWS = 4000


@dataclass(frozen=True, eq=False)
class _Fold:
    """The networks that did not see one fold.

    Attributes:
        networks: its ensemble, stacked.
        seen: the rows that they learned from.
        checks: rows held out from them; some may be there several times.
        errors: (members, checks, s + 1) target less output there, of changes and rewards.
    """

    networks: Network
    seen: Int[np.ndarray, " m"]
    checks: Int[np.ndarray, " h"]
    errors: Float[np.ndarray, "members h c"]


def learn_dynamics(problem: Problem, encoding: Encoding, folds: Folds, settings: ModelSettings) -> Dynamics:
    """Trains all ensembles in one program."""
    data, rng = problem.data, np.random.default_rng(problem.seed)
    samples, weights, members = encoding.samples(data), data.row_weights, settings.members
    steps = settings.steps_for(len(data))
    rows, batches = [], []
    for fold in range(folds.count):
        seen, unseen = _split(problem, folds.rows != fold, rng)
        for _ in range(members):
            rows.append((seen, unseen))
            batches.append(batches_of(seen, weights[seen], steps, settings.batch, rng))
    checks, drawn = np.stack([unseen for _, unseen in rows]), np.stack(batches)
    base = [_base(samples, seen, weights, encoding.ends) for seen, _ in rows]
    first = first_networks(np.stack(base), settings.width, rng)
    # Several devices train as many networks each, where they divide them.
    first, drawn, checks = shared_evenly((first, drawn, checks))
    networks, outputs = train(first, samples, drawn, checks, encoding.ends)
    networks, outputs = jax.tree.map(np.asarray, networks), np.asarray(outputs)
    learned = []
    for number in range(0, len(rows), members):
        own, (seen, unseen) = slice(number, number + members), rows[number]
        errors = _errors(outputs[own], samples, unseen, encoding.state_size)
        learned.append(_Fold(jax.tree.map(lambda array, own=own: array[own], networks), seen, unseen, errors))
    return Dynamics(
        encoding,
        networks,
        _noise(learned, samples, encoding.state_size, rng),
        float(np.mean([np.mean(fold.errors**2) for fold in learned])),
        members,
        _ends(learned, samples, problem, encoding, rng) if encoding.ends else None,
    )


def _noise(folds: list[_Fold], samples: Samples, size: int, rng: np.random.Generator) -> LocalNoise | None:
    """The noise of each fold's networks; None if there is none."""
    found = []
    folds = [_of_known(fold, samples) for fold in folds]
    if not any(noisy_numbers(fold.errors[..., :-1]).any() for fold in folds):
        return None
    for fold in folds:
        seen = rng.choice(fold.seen, size=SIZED_ROWS, replace=len(fold.seen) < SIZED_ROWS)
        features, outputs = (np.asarray(part) for part in _passed(fold.networks, samples.inputs[seen]))
        learned_from = NoisyRows(seen, features, _errors(outputs, samples, seen, size)[..., :-1])
        features, _ = _passed(fold.networks, samples.inputs[fold.checks])
        held_out = NoisyRows(fold.checks, np.asarray(features), fold.errors[..., :-1])
        found.append(local_noise(learned_from, held_out, rng))
    return stacked_noise(found)


def _of_known(fold: _Fold, samples: Samples) -> _Fold:
    """With rows alone whose next state is known, unless there are none: others have no error that could be drawn."""
    seen, checked = samples.weights[fold.seen, 0] > 0, samples.weights[fold.checks, 0] > 0
    if not seen.any() or not checked.any():
        return fold
    return replace(fold, seen=fold.seen[seen], checks=fold.checks[checked], errors=fold.errors[:, checked])


@quickly_compiled()
def _passed(networks: Network, inputs: Any) -> tuple[Any, Any]:
    """Features and outputs of each network."""

    def one(network: Network) -> tuple[Any, Any]:
        features = network.features(inputs)
        return features, network.of_features(features)

    return jax.vmap(one)(networks)


def _ends(
    folds: list[_Fold], samples: Samples, problem: Problem, encoding: Encoding, rng: np.random.Generator
) -> EndOdds:
    """When episodes end, by the mean prediction of each fold's networks."""
    data, found, members = problem.data, [], len(folds[0].errors)
    for fold in folds:
        rows = np.concatenate([fold.seen, np.unique(fold.checks)])
        predicted = _predicted(fold.networks, Units.of(encoding), samples.inputs[rows], encoding.state_size)
        following, own = (np.asarray(part) for part in predicted)
        held_out = np.arange(len(rows)) >= len(fold.seen)
        logged = data.ended[rows], data.row_weights[rows], data.units.rows[rows]
        found.append(learn_ends(following, *logged, own, held_out, rng))
    return stacked_odds(found, members)


@quickly_compiled(static_argnames=("size",))
def _predicted(networks: Network, units: Units, inputs: Any, size: int) -> tuple[Any, Any]:
    """Next states and log-odds of an end, the means over networks."""
    outputs = jax.vmap(lambda network: network(inputs))(networks).mean(axis=0)
    return units.expected(inputs[:, :size], outputs), outputs[:, -1]


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
        total, half = float(weights[rows].sum()), 0.5 * float(weights[rows].mean())
        base[:, -1] = 0.0
        base[-1, -1] = np.log((ended + half) / (total - ended + half))
    return base


def _errors(
    outputs: Float[np.ndarray, "members m k"], samples: Samples, rows: Int[np.ndarray, " m"], size: int
) -> Float[np.ndarray, "members m c"]:
    """Target less output of changes and rewards; 0 where the target is not known."""
    known = slice(0, size + 1)
    return (samples.targets[rows, known] - outputs[..., known]) * samples.weights[rows, known]
