"""The first pass over a log with linear features: its moments."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float, Num

from gradientdice.base.accelerator import closed_form_devices, may_have_devices
from gradientdice.base.errors import InputError
from gradientdice.base.process import one_blas_thread
from gradientdice.functions import MLP, FeatureMap, FittedKernel, LinearFeatures, LinearFunctions, Tabular
from gradientdice.functions.device_features import DeviceFeatures
from gradientdice.functions.kernel import unlogged_action_message
from gradientdice.functions.rows import DenseRows, Rows, add_product
from gradientdice.log.scanning.log import BATCH_ROWS, ScannedLog
from gradientdice.log.scanning.parts import PART_ROWS, Batch
from gradientdice.log.scanning.passes import Run, Sums
from gradientdice.log.transitions import Transitions
from gradientdice.policies import Policy, SamplingPolicy, StatePolicy
from gradientdice.problem.design import Design, LogFeatures, feature_rows, fit_functions
from gradientdice.problem.device_sums import DeviceSums
from gradientdice.problem.moments import Moments, MomentSums, weighted_sum
from gradientdice.problem.scan.asked import Asked, as_asked
from gradientdice.problem.scan.beside import for_each_beside
from gradientdice.problem.scan.counts import CountPass, counted_log
from gradientdice.problem.scan.facts import COLUMNS, FactsCounter, FactsPass
from gradientdice.problem.scan.first import Make
from gradientdice.problem.scan.written import ChunkMemory, written_rows
from gradientdice.problem.stream import BYTES

# Features are made of so many rows at a time: with tens of features they stay in the processor's caches, and their
# memory is used again for the next ones.
CHUNK_ROWS = 1 << 12
# Products of so many features are formed chunk by chunk in several threads, each with sums of its own, for which BLAS
# has one thread: it would divide each small product among all cores. Larger ones it divides well, and sums are large.
NARROW = 512
# Where nothing is drawn: to make a generator takes as long as some chunks' products.
UNUSED = np.random.default_rng(0)
# Sums over current rows; those over following rows are `next_gram`.
OWN_SUMS = ("gram", "mean", "reward")


@dataclass(frozen=True, eq=False)
class BatchFeatures:
    """Feature rows of batches. Draws from a policy that can only be sampled follow from seed and rows alone.

    Attributes:
        policy: the policy.
        functions: the function class, scaled to a sample of the log where it depends on it.
        seed: for draws.
        absorbing: whether the last feature is that of the absorbing state.
        state_type: of the log's states.
        vectors: whether they are vectors.
    """

    policy: StatePolicy
    functions: FeatureMap
    seed: int
    absorbing: bool
    state_type: np.dtype
    vectors: bool

    def chunks(self, data: Transitions) -> Iterator[tuple[slice, Design]]:
        """Which rows, and their feature rows, until all transitions have come."""
        for rows in _cut(len(data)):
            yield rows, self._rows(data, self.functions, rows)

    def written(self, data: Transitions, memories: Sequence[ChunkMemory]) -> Iterator[tuple[slice, Design]]:
        """The same for those who are done with a chunk before its memory is used again, in turn."""
        functions, policy = self.functions, self.policy
        for number, rows in enumerate(_cut(len(data))):
            if isinstance(functions, LinearFeatures) and not isinstance(policy, SamplingPolicy):
                yield rows, written_rows(data, policy, functions, rows, memories[number % len(memories)])
            else:
                yield rows, self._rows(data, functions, rows)

    def width(self, data: Transitions) -> int:
        """How many features there are, the absorbing state's included."""
        return self._rows(data, self.functions, slice(0, 1)).width

    def rows(self, data: Transitions) -> Design:
        """The feature rows of some transitions, all at once."""
        return self._rows(data, self.functions, slice(None))

    def on_device(self, data: Transitions, made: DeviceFeatures) -> Design:
        """The feature rows of some transitions, made by a device all at once."""
        return self._rows(data, made, slice(None))

    def device_for(self, data: Transitions) -> DeviceFeatures | None:
        """What makes the rows of batches like this one on a device; None for NumPy.

        A policy that samples draws for each chunk, and another cut into chunks would be another draw.
        """
        functions = self.functions
        if not (isinstance(functions, (LinearFeatures, FittedKernel)) and may_have_devices()):
            return None
        if isinstance(self.policy, SamplingPolicy):
            return None
        width, size = self.width(data), min(len(data), BATCH_ROWS)
        # Where a batch is full, its part goes on; two products of all rows, one sum of each, the rows of a batch.
        total = PART_ROWS if len(data) >= BATCH_ROWS else len(data)
        devices = closed_form_devices(4.0 * total * width**2, BYTES * 2 * (2 * width**2 + size * width))
        return None if devices is None else DeviceFeatures.of(functions, devices, size)

    def _rows(self, data: Transitions, functions: FeatureMap | DeviceFeatures, rows: slice) -> Design:
        known = LogFeatures(absorbing=self.absorbing)
        return feature_rows(data, self.policy, functions, rows, self._rng(data.next_states[rows]), known)

    def starts(self, states: Num[np.ndarray, "m ..."]) -> Rows:
        """Those of some initial states, without the absorbing state's feature, which is 0."""
        return self.functions.expected(states, self.policy, self._rng(states))

    def states(self, numbers: Float[np.ndarray, "m d"]) -> Num[np.ndarray, "m ..."]:
        """States that were kept as rows of floats, as they were."""
        return (numbers if self.vectors else numbers[:, 0]).astype(self.state_type)

    def _rng(self, states: np.ndarray) -> np.random.Generator:
        if not isinstance(self.policy, SamplingPolicy):
            return UNUSED
        return np.random.default_rng([self.seed, zlib.crc32(np.ascontiguousarray(states).tobytes())])


@dataclass(eq=False)
class MomentPass(FactsPass):
    """Moments of features.

    Attributes:
        features: of batches; with a feature for the absorbing state if the log says where episodes end.
        threads: how many form products, beside the one that makes features.
    """

    features: BatchFeatures = field(kw_only=True)
    threads: int = field(kw_only=True)

    @property
    def kind(self) -> str:
        """In a word."""
        return "moments"

    @property
    def is_heavy(self) -> bool:
        """Features and their products take longer than to read their rows."""
        return True

    def counter(self) -> _Counter:
        """What sums over the rows of one part."""
        return _Counter(self)

    def start_sums(self, states: Num[np.ndarray, "m ..."], weights: Float[np.ndarray, " m"]) -> Sums:
        """The sum of their feature rows, their weight, and their number."""
        rows = self.features.starts(states)
        width = rows.values.shape[1] if isinstance(rows, DenseRows) else getattr(rows, "width", 0)
        numbers = np.array([weights.sum(), len(states)])
        return {"initial": weighted_sum(rows, weights, width), "initial_numbers": numbers}

    def as_states(self, runs: Float[np.ndarray, "m k"]) -> Num[np.ndarray, "m ..."]:
        """The first states of some runs."""
        return self.features.states(runs[:, COLUMNS:])


class _Counter(FactsCounter):
    def __init__(self, work: MomentPass) -> None:
        super().__init__(work)
        self._features, self._threads = work.features, work.threads
        self._sums: MomentSums | DeviceSums | None = None
        self._on_device: DeviceFeatures | None = None
        self._following = np.zeros((0, 0))
        # For the chunk that is being made, and those whose products are being formed.
        self._memories = [ChunkMemory(absorbing=work.features.absorbing) for _ in range(work.threads + 1)]
        policy = work.features.policy
        self._actions = np.zeros(0 if isinstance(policy, SamplingPolicy) else policy.num_actions)

    def add(self, batch: Batch) -> None:
        """Adds the rows of a batch."""
        super().add(batch)
        if self._sums is None:
            self._on_device = self._features.device_for(batch.data)
            self._sums = self._begun(self._features.width(batch.data))
        if isinstance(self._sums, DeviceSums):
            assert self._on_device is not None
            self._sums.add(self._features.on_device(batch.data, self._on_device))
        else:
            written = self._features.written(batch.data, self._memories)
            self._add_chunks(self._sums, (design for _, design in written))
        actions = batch.data.actions
        if len(self._actions) and actions.ndim == 1 and actions.dtype.kind in "iu":
            known = (actions >= 0) & (actions < len(self._actions)) & (batch.data.row_weights > 0)
            self._actions += np.bincount(actions[known], minlength=len(self._actions))

    def _add_chunks(self, own: MomentSums, chunks: Iterator[Design]) -> None:
        """Adds feature rows, some at a time; the order of the sums is the same with any number of threads."""

        def add_in_place(design: Design) -> None:
            own.add(design)
            add_product(self._following, design.following, design.current, design.weights)

        def add_sums(sums: tuple[MomentSums, np.ndarray]) -> None:
            own.merge(sums[0])
            self._following += sums[1]

        if len(own.mean) > NARROW:
            for_each_beside(chunks, add_in_place, lambda _: None, min(self._threads, 1))
            return
        with one_blas_thread():
            for_each_beside(chunks, _chunk_sums, add_sums, self._threads)

    def _begun(self, width: int) -> MomentSums | DeviceSums:
        if self._on_device is not None:
            return DeviceSums(self._on_device.place.devices, width)
        self._following = np.zeros((width, width))
        return MomentSums.zero(width)

    def sums(self) -> Sums:
        """What they come to."""
        if self._sums is None:
            return super().sums()
        own, following = self._sums, self._following
        if isinstance(own, DeviceSums):
            gram, following, mean, reward, total = own.totals(np.ones(1))
            own = MomentSums(gram, mean, reward, total)
        moments = {name: getattr(own, name) for name in OWN_SUMS}
        actions = {"actions": self._actions} if len(self._actions) else {}
        weight = np.array([own.weight])
        return {**super().sums(), **moments, **actions, "next_gram": following, "weight": weight}


def _cut(rows: int) -> Iterator[slice]:
    for first in range(0, rows, CHUNK_ROWS):
        yield slice(first, min(first + CHUNK_ROWS, rows))


def _chunk_sums(design: Design) -> tuple[MomentSums, Float[np.ndarray, "K K"]]:
    """The sums over a chunk's rows, and those over its following rows."""
    own, following = MomentSums.zero(design.width), np.zeros((design.width, design.width))
    own.add(design)
    add_product(following, design.following, design.current, design.weights)
    return own, following


def whole_moments(features: BatchFeatures, sums: Sums, some: Transitions) -> tuple[Moments, BatchFeatures]:
    """The moments of a whole log, and the features behind them: without the absorbing state's if nothing ended.

    Args:
        features: those of the pass.
        sums: of all parts.
        some: any rows of the log.
    """
    parts = [np.array(sums[name]) for name in ("next_gram", *OWN_SUMS)]
    ended = bool(sums["totals"][4])
    if features.absorbing and not ended:
        parts = [part[tuple(slice(0, -1) for _ in part.shape)] for part in parts]
        features = replace(features, absorbing=False)
    following, *own = parts
    moments = MomentSums(*own, weight=float(sums["weight"][0])).moments(following)
    if "initial" in sums and sums["initial_numbers"][0] > 0:
        weight = float(sums["initial_numbers"][0])
        initial = sums["initial"] / weight
        initial = np.append(initial, 0.0) if features.absorbing else initial
        moments = replace(moments, initial=initial, initial_weight=weight)
    _, design = next(features.chunks(some))
    return moments.with_log(features.functions, design), features


def batch_features(asked: Asked, functions: LinearFunctions) -> BatchFeatures:
    """The features of batches, with one for the absorbing state if the log says where episodes end."""
    sample = asked.log.sample
    fitted = fit_functions(functions, sample, asked.policy)
    ends = "terminated" in asked.log.columns
    return BatchFeatures(asked.policy, fitted, asked.seed, ends, sample.states.dtype, sample.states.ndim == 2)


def moment_pass(asked: Asked, features: BatchFeatures) -> Make:
    """What makes a pass for moments, from where runs may be written and a discount."""
    starts, threads = asked.has_first_states, asked.threads
    return lambda spill, discount: MomentPass(spill, discount, starts, features=features, threads=threads)


def finished_moments(asked: Asked, features: BatchFeatures, sums: Sums) -> tuple[Moments, BatchFeatures]:
    """The moments of a whole log, and the features behind them; an error if an action is missing."""
    _require_logged_actions(asked, sums)
    return whole_moments(features, sums, asked.log.sample)


def _require_logged_actions(asked: Asked, sums: Sums) -> None:
    """An error for an action that the log never contains, and that the policy takes in the sample."""
    policy, sample = asked.policy, asked.log.sample
    if isinstance(policy, SamplingPolicy) or "actions" not in sums:
        return
    logged = sums["actions"]
    never = [action for action in range(policy.num_actions) if action >= len(logged) or not logged[action]]
    if not never:
        return
    states = [sample.next_states[~sample.ended]]
    if sample.start_states is not None:
        states.append(sample.start_states)
    taken = policy.probabilities_at(np.concatenate(states)).sum(axis=0)
    missing = [action for action in never if taken[action] > 0]
    if missing:
        raise InputError(unlogged_action_message(missing[0]))


def moments_of_scan(log: ScannedLog, policy: Policy, functions: LinearFunctions, seed: int) -> Moments:
    """The moments of a scanned log; see `Moments.from_transitions`."""
    if functions is None:
        raise InputError("functions is None: give LinearFeatures(…), RandomFourier(…) or Nystrom(…).")
    if isinstance(functions, MLP):
        raise InputError("Networks have no moments: give LinearFeatures(…), RandomFourier(…) or Tabular(…).")
    if isinstance(functions, Tabular):
        asked = as_asked(log, policy, functions, seed, Run())
        starts = asked.has_first_states
        sums = asked.summed(lambda spill: CountPass(spill, starts=starts, table=functions))
        return Moments.from_transitions(counted_log(functions, sums), policy, functions, seed=seed)
    asked = as_asked(log, policy, functions, seed, Run())
    features = batch_features(asked, functions)
    make = moment_pass(asked, features)
    sums = asked.summed(lambda spill: make(spill, 1.0))
    return finished_moments(asked, features, sums)[0]
