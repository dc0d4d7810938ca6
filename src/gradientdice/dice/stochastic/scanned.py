"""A scanned log as what the learner takes: rows are read block by block, curves are recorded on the log's sample."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gradientdice.base.errors import InputError, starts_missing
from gradientdice.dice.stochastic.feed import BlockSource, Feed, NetworkBlockSource
from gradientdice.dice.stochastic.linear import LinearClass
from gradientdice.dice.stochastic.network_source import NetworkSource
from gradientdice.dice.stochastic.networks import NetworkClass
from gradientdice.dice.stochastic.recorders import LogMeans
from gradientdice.dice.stochastic.setup import Setup
from gradientdice.dice.stochastic.sources import Source, unequal_bits
from gradientdice.functions import LinearFunctions, LoggedTable, Tabular
from gradientdice.functions.mlp import MLP
from gradientdice.functions.rows import DenseRows, plain
from gradientdice.log.scanning.log import ScannedLog, fingerprint
from gradientdice.log.scanning.shuffled import ShuffledRows
from gradientdice.log.split import some_rows
from gradientdice.log.transitions import Transitions
from gradientdice.policies import LoggedPolicy, Policy, StatePolicy
from gradientdice.problem.absorbing import ABSORBING_SHARE, loop_weight
from gradientdice.problem.design import fit_functions
from gradientdice.problem.inputs import Encoder, network_inputs
from gradientdice.problem.scan.moments import BatchFeatures

# So many rows, as a source, tell one policy or function class from another.
PROBE_ROWS = 64


def has_scanned_ends(log: ScannedLog) -> bool:
    """Whether the log says where episodes end: there is then an absorbing state, even if none does."""
    return "terminated" in log.columns


def scanned_setup(log: ScannedLog, policy: Policy, functions: Any, discount: float) -> Setup:
    """A scanned log at a discount; features, or the inputs of networks, are scaled to its sample.

    Raises:
        InputError: for a table, which is solved from counts, and for what needs every row in memory.
    """
    if isinstance(functions, (Tabular, LoggedTable)):
        raise InputError(
            "A table needs no minibatches: evaluate(log, …) without solver= solves it from counts. To train one, load "
            "the log, or use log.sample."
        )
    if isinstance(policy, LoggedPolicy):
        raise InputError("A LoggedPolicy has one row per transition in memory: give the policy as a function.")
    if "weights" in log.columns:
        raise InputError(
            "Minibatches of a scanned log have each row once in an epoch, which weights would change. Leave them out "
            "by columns={'weights': None}, or use the closed form, which takes them."
        )
    ends, sample = has_scanned_ends(log), log.sample
    if sample.start_states is None and (discount < 1 or ends):
        raise starts_missing(discount)
    made = (
        _network_setup(policy, functions, sample, ends, discount)
        if isinstance(functions, MLP)
        else _linear_setup(policy, functions, sample, ends, discount)
    )
    functions_class, make, inputs, recorder = made
    rows = ShuffledRows.of_scan(log)
    share = 1 - ABSORBING_SHARE if ends and discount < 1 else 1.0
    few = some_rows(sample, np.arange(min(PROBE_ROWS, len(sample))))
    identity = _identity([fingerprint(log), sorted(log.columns.items()), rows.seed, rows.pool_rows], make(few, 1))
    return Setup(functions_class, Feed(rows, make, share, inputs, sample, identity), recorder)


MadeOf = tuple[Any, Callable[[Transitions, int], Source], Callable[[Transitions], np.ndarray], LogMeans]


def _linear_setup(
    policy: StatePolicy, functions: LinearFunctions, sample: Transitions, ends: bool, discount: float
) -> MadeOf:
    fitted, restart = fit_functions(functions, sample, policy), ends and discount == 1
    features = BatchFeatures(policy, fitted, 0, ends, sample.states.dtype, sample.states.ndim == 2)

    def matrix(rows: Any) -> np.ndarray:
        return np.asarray(plain(rows).matrix(0), dtype=np.float32)

    def looped(rows: Any, loops: int) -> DenseRows:
        """With the absorbing state's own row so many times behind them."""
        values = matrix(rows)
        own = np.eye(1, values.shape[1], values.shape[1] - 1, dtype=np.float32)
        count = 0 if restart or not ends else loops
        return DenseRows(jnp.asarray(np.concatenate([values, np.repeat(own, count, axis=0)])))

    whole = features.rows(sample)
    initial = DenseRows(jnp.asarray(matrix(whole.following.take(slice(0, 1)))))
    if sample.start_states is not None:
        starts = matrix(features.starts(sample.start_states))
        initial = DenseRows(jnp.asarray(np.pad(starts, ((0, 0), (0, int(ends))))))
    shares = None if sample.start_weights is None else unequal_bits(sample.start_weights)

    def make(data: Transitions, loops: int) -> Source:
        design = features.rows(data)
        current, following = looped(design.current, loops), looped(design.following, loops)
        again = jnp.asarray(design.ended) if restart else None
        return BlockSource(design.width, current, following, initial, None, shares, again)

    def inputs(data: Transitions) -> np.ndarray:
        return np.pad(matrix(fitted.at(data.states, data.actions)), ((0, 0), (0, int(ends))))

    recorded, rewards, weights = looped(whole.current, 1), sample.rewards, np.ones(len(sample))
    if len(recorded) > len(sample):
        rewards, weights = np.append(rewards, 0.0), np.append(weights, loop_weight(float(len(sample))))
    factors = np.stack([weights * rewards, weights], axis=1) / weights.sum()
    means = LogMeans(recorded, jnp.asarray(factors, dtype=jnp.float32))
    return LinearClass(whole.width), make, inputs, means


def _network_setup(policy: StatePolicy, functions: MLP, sample: Transitions, ends: bool, discount: float) -> MadeOf:
    encoder, restart = Encoder.create(sample, policy, functions.draws), ends and discount == 1

    def inputs_of(data: Transitions) -> Any:
        rng = np.random.default_rng([0, zlib.crc32(np.ascontiguousarray(data.next_states).tobytes())])
        return network_inputs(data, policy, functions.draws, rng, encoder, ends)

    whole = NetworkSource.create(inputs_of(sample), discount)

    def make(data: Transitions, loops: int) -> Source:
        # The absorbing state's own row is the last, where there is one.
        used = inputs_of(data)
        index = np.append(np.arange(len(data)), np.full(loops if ends and not restart else 0, len(data)))
        return NetworkBlockSource(
            jnp.asarray(used.current[index]),
            jnp.asarray(used.following[index]),
            jnp.asarray(used.following_weights[index]),
            whole.initial,
            whole.initial_weights,
            whole.starts,
            jnp.asarray(used.rewards[index]),
            jnp.full(len(index), 1 / len(index)),
            None,
            jnp.asarray(used.ended[index]) if ends and not restart else None,
            jnp.asarray(used.ended[index]) if restart else None,
            used.sampled,
        )

    def inputs(data: Transitions) -> np.ndarray:
        return np.pad(encoder.at(data.states, data.actions), ((0, 0), (0, int(ends))))

    return NetworkClass(functions, whole.current.shape[1]), make, inputs, LogMeans.of_source(whole)


def _identity(known: list[Any], source: Source) -> str:
    found = hashlib.sha256(repr(known).encode())
    for leaf in jax.tree.leaves(source):
        found.update(np.asarray(leaf).tobytes())
    return found.hexdigest()
