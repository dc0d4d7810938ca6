"""A problem, or a scanned log, as what the learner takes: functions, a source of minibatches, figures for the curve.

A log that is not in memory is read block by block, and its curves are recorded on the log's sample. The rows come from
a shuffled stream, each once in an epoch. A block's rows are put into an order of its own for each seed, so that seeds
see different minibatches of the same stretch of the log. The rows of a block follow from its first step alone: a run
that goes on from a checkpoint in the middle of an epoch has the same bits.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gradientdice.base.errors import InputError, starts_missing
from gradientdice.dice.saddle import SaddleObjective
from gradientdice.dice.stochastic.functions import FunctionClass, LinearClass, NetworkClass
from gradientdice.dice.stochastic.plan import Plan
from gradientdice.dice.stochastic.sources import Drawn, LogSource, NetworkSource, Source, drawn_rows, unequal_bits
from gradientdice.functions import LinearFunctions, LoggedTable, Tabular
from gradientdice.functions.mlp import MLP
from gradientdice.functions.rows import DenseRows, LearnerRows, plain
from gradientdice.log.scanning.log import ScannedLog, fingerprint
from gradientdice.log.scanning.shuffled import ShuffledRows
from gradientdice.log.split import some_rows
from gradientdice.log.transitions import Transitions
from gradientdice.policies import LoggedPolicy, Policy, StatePolicy
from gradientdice.problem.absorbing import ABSORBING_SHARE, loop_weight
from gradientdice.problem.design import Design, fit_functions
from gradientdice.problem.inputs import Encoder, NetworkInputs, network_inputs
from gradientdice.problem.problem import Problem
from gradientdice.problem.scan.moments import BatchFeatures

# The number of rows that, as a source, tell one policy or function class from another.
PROBE_ROWS = 64


class Recorder(Protocol):
    """Figures of a ratio for the learning curve, computed on the device."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the figures."""
        ...

    @property
    def num_rows(self) -> int:
        """The number of rows over which a figure is taken."""
        ...

    def measure(self, functions: FunctionClass, estimator: SaddleObjective, params: Any, chunk: int) -> Any:
        """The figures of the ratio with these parameters, (figures, *runs), by so many rows at a time."""
        ...

    def select(self, cases: np.ndarray) -> Recorder:
        """A recorder for some of the cases."""
        ...


class RatioError(NamedTuple):
    """The ratio's error MSE(τ), the mean over pairs of (τ − τ*)², for true ratios (pairs,) or (pairs, cases)."""

    rows: LearnerRows | None  # the features of each pair; None is a table
    truth: Any

    names = ("ratio_error",)

    @classmethod
    def create(cls, features: np.ndarray | None, truth: np.ndarray) -> RatioError:
        """A recorder for features (pairs, K) and true ratios (pairs,) or (pairs, cases)."""
        rows = None if features is None else DenseRows(jnp.asarray(features, dtype=jnp.float32))
        return cls(rows, jnp.asarray(truth, dtype=jnp.float32))

    @property
    def num_rows(self) -> int:
        """The number of pairs."""
        return len(self.truth)

    def measure(self, functions: FunctionClass, estimator: SaddleObjective, params: Any, chunk: int) -> Any:
        """The error of each run's ratio; there are few pairs, and all are taken at a time."""
        raw = params if self.rows is None else functions.outputs(params, self.rows)
        truth = self.truth if self.truth.ndim == 2 else self.truth[:, None]
        return jnp.mean((estimator.ratio(raw) - truth) ** 2, axis=0)[None]

    def select(self, cases: np.ndarray) -> RatioError:
        """A recorder with the true ratios of these cases, which may differ from case to case."""
        return self if self.truth.ndim == 1 else self._replace(truth=self.truth[:, cases])


class LogMeans(NamedTuple):
    """The value estimate ρ̂ = E[τ r] and the mean ratio E[τ] over the log."""

    inputs: Any  # feature rows, or inputs of networks
    factors: Any  # (n, 2): weight · reward and weight, the weights summing to 1

    names = ("value", "mean_ratio")

    @classmethod
    def of_design(cls, design: Design, inputs: LearnerRows) -> LogMeans:
        """Means for linear functions; a source's rows are the inputs, at discount 1 without the absorbing one."""
        keep = slice(0, len(inputs))
        weights = design.weights[keep] / design.weights[keep].sum()
        factors = np.stack([weights * design.rewards[keep], weights], axis=1)
        return cls(inputs, jnp.asarray(factors, dtype=jnp.float32))

    @classmethod
    def of_source(cls, source: NetworkSource) -> LogMeans:
        """Means for networks, over the rows of a source."""
        return cls(source.current, jnp.stack([source.weights * source.rewards, source.weights], axis=1))

    @property
    def num_rows(self) -> int:
        """The length of the log."""
        return len(self.factors)

    def measure(self, functions: FunctionClass, estimator: SaddleObjective, params: Any, chunk: int) -> Any:
        """Value estimate and mean ratio of each run, a chunk of rows at a time."""

        def part(rows: tuple[Any, Any]) -> Any:
            inputs, factors = rows
            return jnp.matmul(factors.T, estimator.ratio(functions.outputs(params, inputs)), precision="highest")

        n, rows = len(self.factors), (self.inputs, self.factors)
        if chunk >= n:
            return part(rows)
        whole = n // chunk * chunk
        shaped = jax.tree.map(lambda leaf: leaf[:whole].reshape(-1, chunk, *leaf.shape[1:]), rows)
        like = jax.eval_shape(part, jax.tree.map(lambda leaf: leaf[:chunk], rows))
        total, _ = lax.scan(lambda total, rows: (total + part(rows), None), jnp.zeros(like.shape, like.dtype), shaped)
        if whole < n:
            total = total + part(jax.tree.map(lambda leaf: leaf[whole:], rows))
        return total

    def select(self, cases: np.ndarray) -> LogMeans:
        """The recorder itself: the log is common to all cases."""
        return self


class Setup(NamedTuple):
    """Everything that a run needs besides its estimator, solver and seed."""

    functions: FunctionClass
    source: Source | Feed
    recorder: Recorder


def log_setup(problem: Problem, discount: float) -> Setup:
    """Setup of a log in memory: at discount 1 ended episodes restart, below 1 all discounts see the same log."""
    if isinstance(problem.functions, MLP):
        return network_setup(problem.functions, problem.inputs, discount)
    design = problem.design
    source = LogSource.create(design, discount)
    return Setup(LinearClass(source.num_features), source, LogMeans.of_design(design, source.current))


def network_setup(functions: MLP, inputs: NetworkInputs, discount: float) -> Setup:
    """Setup of networks from their inputs, which may be those of some folds."""
    source = NetworkSource.create(inputs, discount)
    return Setup(NetworkClass(functions, source.current.shape[1]), source, LogMeans.of_source(source))


def has_ends(problem: Problem) -> bool:
    """True if the log at discount 1, where ended episodes restart, differs from that below 1."""
    return problem.inputs.absorbing if isinstance(problem.functions, MLP) else problem.design.absorbing


@dataclass(frozen=True, eq=False)
class Feed:
    """Maker of a source for each block of steps, from a shuffled stream of a scanned log's rows.

    Attributes:
        rows: the stream.
        make: from some rows of the log, and how many rows of the absorbing state there are beside them, to a source.
        share: of the rows of minibatches, those of the log; the others are the absorbing state's own.
        inputs: from rows of the log to what the functions read, the absorbing state's indicator last if there is one.
        sample: any rows of the log.
        identity: tells one log, policy and function class from another.
    """

    bytes_per_draw: ClassVar[int] = 32

    rows: ShuffledRows
    make: Callable[[Transitions, int], Source]
    share: float
    inputs: Callable[[Transitions], np.ndarray]
    sample: Transitions
    identity: str

    @property
    def width(self) -> int:
        """The number of inputs of the functions."""
        return self.inputs(some_rows(self.sample, np.arange(1))).shape[1]

    def template(self, plan: Plan) -> Source:
        """A source of any rows, with the shapes that a block has."""
        rows, loops = self._counts(plan, *next(plan.blocks()))
        return self.make(some_rows(self.sample, np.resize(np.arange(len(self.sample)), rows)), loops)

    def sources(self, plan: Plan, done: int) -> Iterator[Source]:
        """The sources of the blocks that are not done yet, one after the other."""
        blocks = list(plan.blocks())[done:]
        if not blocks:
            return
        counts = [self._counts(plan, *block) for block in blocks]
        pieces = self.rows.pieces(self._position(plan, blocks[0][0]), (rows for rows, _ in counts))
        for data, (_, loops) in zip(pieces, counts, strict=True):
            yield self.make(data, loops)

    def _position(self, plan: Plan, step: int) -> int:
        """The number of rows of the stream that the steps before this one take."""
        return math.floor(self.share * step * plan.batch_size)

    def _counts(self, plan: Plan, first: int, length: int) -> tuple[int, int]:
        """Numbers of a block's rows of the log and of the absorbing state."""
        rows = self._position(plan, first + length) - self._position(plan, first)
        if rows == 0:
            raise InputError(
                f"{length} steps with minibatches of {plan.batch_size} are too few to be read at a time from a scanned "
                "log: choose a larger batch_size or record_every, and steps that record_every divides."
            )
        return rows, length * plan.batch_size - rows


class BlockSource(LogSource):
    """Feature rows of one block, each of which is used once."""

    def transitions(self, key: jax.Array, count: int) -> jax.Array:
        """Row numbers in a random order: (count,)."""
        return jax.random.permutation(key, len(self.current))[:count]


class NetworkBlockSource(NetworkSource):
    """Networks' inputs of one block, each of which is used once."""

    bytes_per_draw: ClassVar[int] = 32

    def draw(self, seed: Any, start: Any, length: int, size: int) -> Drawn:
        """Row numbers in a random order, (length, size), with initial states and actions."""
        keys = jax.random.split(jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), 1), start), 3)
        shape = length, size
        row = jax.random.permutation(keys[0], len(self.rewards))[: length * size].reshape(shape)
        starts, restarts = drawn_rows(keys[1], (2, *shape), len(self.initial), self.starts)
        count = self.following.shape[1]
        actions = jax.random.randint(keys[2], (length, 3, size), 0, count) if self.sampled else None
        return Drawn(row, starts, None if self.restarts is None else restarts, actions)

    def at_once(self, length: int) -> int:
        """The whole block, since its rows have one order."""
        return length


def has_scanned_ends(log: ScannedLog) -> bool:
    """True if the log says where episodes end: there is then an absorbing state, even if none does."""
    return "terminated" in log.columns


def scanned_setup(log: ScannedLog, policy: Policy, functions: Any, discount: float) -> Setup:
    """Setup of a scanned log at a discount; features, or the inputs of networks, are scaled to its sample.

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
        _scanned_networks(policy, functions, sample, ends, discount)
        if isinstance(functions, MLP)
        else _scanned_features(policy, functions, sample, ends, discount)
    )
    function_class, make, inputs, recorder = made
    rows = ShuffledRows.of_scan(log)
    share = 1 - ABSORBING_SHARE if ends and discount < 1 else 1.0
    few = some_rows(sample, np.arange(min(PROBE_ROWS, len(sample))))
    known = [fingerprint(log), sorted(log.columns.items()), rows.seed, rows.pool_rows]
    identity = leaves_digest(make(few, 1), repr(known))
    return Setup(function_class, Feed(rows, make, share, inputs, sample, identity), recorder)


MadeOf = tuple[Any, Callable[[Transitions, int], Source], Callable[[Transitions], np.ndarray], LogMeans]


def _scanned_features(
    policy: StatePolicy, functions: LinearFunctions, sample: Transitions, ends: bool, discount: float
) -> MadeOf:
    fitted, restart = fit_functions(functions, sample, policy), ends and discount == 1
    features = BatchFeatures(policy, fitted, 0, ends, sample.states.dtype, sample.states.ndim == 2)

    def matrix(rows: Any) -> np.ndarray:
        return np.asarray(plain(rows).matrix(0), dtype=np.float32)

    def looped(rows: Any, loops: int) -> DenseRows:
        """Rows with the absorbing state's own row so many times behind them."""
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


def _scanned_networks(policy: StatePolicy, functions: MLP, sample: Transitions, ends: bool, discount: float) -> MadeOf:
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


def leaves_digest(tree: Any, known: str = "") -> str:
    """A digest of a text and of the bytes of a tree's arrays."""
    found = hashlib.sha256(known.encode())
    for leaf in jax.tree.leaves(tree):
        found.update(np.asarray(leaf).tobytes())
    return found.hexdigest()
