"""The log as feature rows: current, following and initial, with termination made explicit.

A terminated transition leads to an absorbing state with an indicator feature of its own, the last column,
and one zero-reward self-loop row of that state is appended. The occupancy then sums to 1, as the theory
needs, and the estimate does not depend on that row's weight. At discount 1 there is no absorbing state:
an ended episode restarts from an initial state, so the rows that ended are also marked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from gradientdice.functions import FeatureMap, LinearFunctions, LoggedTable, Nystrom, RandomFourier, Tabular
from gradientdice.functions.device_features import DeviceFeatures
from gradientdice.functions.device_rows import DeviceRows
from gradientdice.functions.rows import BlockRows, DenseRows, LearnerRows, Rows, SparseRows, plain
from gradientdice.log.transitions import Transitions
from gradientdice.policies import LoggedPolicy, Policy, SamplingPolicy, StatePolicy
from gradientdice.problem.absorbing import loop_weight


def fit_functions(functions: LinearFunctions, data: Transitions, policy: Policy) -> FeatureMap:
    """The function class, scaled to the log where it depends on it."""
    return functions.fitted(data, policy) if isinstance(functions, (RandomFourier, Nystrom)) else functions


@dataclass(frozen=True, eq=False)
class Design:
    """Feature rows of a log (or of a part of one).

    Attributes:
        width: the number of features, the absorbing state's included.
        absorbing: whether the last feature is that of the absorbing state.
        current: x(s,a), one row per transition.
        following: Σ_a' π(a'|s') x(s',a').
        rewards: (n,).
        weights: (n,).
        ended: (n,) where the episode terminated.
        initial: rows for the initial states, or None.
        initial_weights: (n0,) how many times each of them counts, or None.
    """

    width: int
    absorbing: bool
    current: Rows
    following: Rows
    rewards: Float[np.ndarray, " n"]
    weights: Float[np.ndarray, " n"]
    ended: Bool[np.ndarray, " n"]
    initial: Rows | None
    initial_weights: Float[np.ndarray, " n0"] | None = None


@dataclass(eq=False)
class LogFeatures:
    """The features of some transitions that do not depend on the policy, once they are known.

    Attributes:
        current: x(s,a).
        following: φ(s'), where Σ_a' π(a'|s') x(s',a') is made of it and of the policy's probabilities.
        absorbing: whether there is a feature for the absorbing state; None is where an episode of the log ended.
    """

    current: Rows | None = None
    following: Float[np.ndarray, "n M"] | None = None
    absorbing: bool | None = None


def feature_rows(
    data: Transitions,
    policy: Policy,
    functions: FeatureMap | DeviceFeatures,
    rows: slice,
    rng: np.random.Generator,
    known: LogFeatures | None = None,
) -> Design:
    """The feature rows of some transitions, without initial states and without the self-loop row.

    Args:
        data: the log.
        policy: the policy.
        functions: the function class, scaled to the log.
        rows: which transitions.
        rng: for policies that can only be sampled.
        known: features that another policy's rows needed too; what is still missing there is added.
    """
    n = len(data.rewards[rows])
    known = LogFeatures() if known is None else known
    absorbing = _has_absorbing(data) if known.absorbing is None else known.absorbing
    if known.current is None:
        known.current = functions.at(data.states[rows], data.actions[rows])
    current = known.current
    ended = data.terminated[rows] if absorbing and data.terminated is not None else np.zeros(n, dtype=bool)
    next_states = data.next_states[rows]
    if ended.any():
        # The state after the end means nothing and may be anything: look at the state before it instead.
        next_states = np.array(next_states)
        next_states[ended] = data.states[rows][ended]
    at_next = policy.at_next(rows, len(data)) if isinstance(policy, LoggedPolicy) else policy
    following = _expected(functions, next_states, at_next, rng, known)
    width = _width(functions, current)
    if absorbing:
        current, following = _widen(current), _send_to_absorbing(_widen(following), ended, width)
        width += 1
    weights = np.ones(n) if data.weights is None else data.weights[rows]
    return Design(width, absorbing, current, following, data.rewards[rows], weights, ended, None)


def _expected(
    functions: FeatureMap | DeviceFeatures,
    states: np.ndarray,
    policy: StatePolicy,
    rng: np.random.Generator,
    known: LogFeatures,
) -> Rows:
    """Σ_a π(a|s) x(s,a) at the next states."""
    if known.following is not None:
        assert not isinstance(policy, SamplingPolicy)
        return BlockRows(known.following, policy.probabilities_at(states))
    following = functions.expected(states, policy, rng)
    if isinstance(following, BlockRows):
        known.following = following.base
    return following


def initial_rows(data: Transitions, policy: Policy, functions: FeatureMap, rng: np.random.Generator) -> Rows | None:
    """Σ_a π(a|s0) x(s0,a) for each initial state, or None if the log has none."""
    states = data.start_states
    if states is None or (isinstance(policy, LoggedPolicy) and not policy.knows_initial):
        return None
    at_initial = policy.at_initial(len(states)) if isinstance(policy, LoggedPolicy) else policy
    rows = functions.expected(states, at_initial, rng)
    return _widen(rows) if _has_absorbing(data) else rows


def self_loop(design: Design) -> Rows:
    """The absorbing state's own row, which is also its following row."""
    column = design.width - 1
    if isinstance(design.current, SparseRows):
        return SparseRows(np.full((1, design.current.indices.shape[1]), column, dtype=np.int32))
    return DenseRows(np.eye(1, design.width, column))


def whole_design(data: Transitions, policy: Policy, functions: LinearFunctions, rng: np.random.Generator) -> Design:
    """All rows of a log at once, the absorbing self-loop row appended and the initial rows in place."""
    functions = fit_functions(functions, data, policy)
    design = feature_rows(data, policy, functions, slice(None), rng)
    initial = initial_rows(data, policy, functions, rng)
    initial = None if initial is None else plain(initial)
    current, following, weights = plain(design.current), plain(design.following), design.weights
    rewards, ended = design.rewards, design.ended
    if design.absorbing:
        loop, weight = self_loop(design), loop_weight(float(weights.sum()))
        current, following = _append(current, loop), _append(following, loop)
        rewards, weights, ended = np.append(rewards, 0.0), np.append(weights, weight), np.append(ended, False)
    shares = None if initial is None else data.start_weights
    return Design(design.width, design.absorbing, current, following, rewards, weights, ended, initial, shares)


def _width(functions: FeatureMap | DeviceFeatures, rows: Rows) -> int:
    if isinstance(rows, SparseRows):
        assert isinstance(functions, (Tabular, LoggedTable))
        return functions.num_features
    return rows.values.shape[1] if isinstance(rows, DenseRows) else rows.width


def _has_absorbing(data: Transitions) -> bool:
    return data.terminated is not None and bool(data.terminated.any())


def _widen(rows: Rows) -> Rows:
    if isinstance(rows, BlockRows):
        return BlockRows(rows.base, rows.weights, np.zeros(len(rows)))
    if isinstance(rows, DeviceRows):
        return replace(rows, absorbing=np.zeros(len(rows)))
    return rows if isinstance(rows, SparseRows) else DenseRows(np.pad(rows.matrix(0), ((0, 0), (0, 1))))


def _send_to_absorbing(rows: Rows, ended: np.ndarray, column: int) -> Rows:
    if isinstance(rows, BlockRows):
        return BlockRows(rows.base, np.where(ended[:, None], 0.0, rows.weights), ended.astype(np.float64))
    if isinstance(rows, DeviceRows):
        return rows.sent(ended)
    if isinstance(rows, DenseRows):
        values = np.array(rows.values)
        values[ended] = 0.0
        values[ended, column] = 1.0
        return DenseRows(values)
    assert isinstance(rows, SparseRows)
    indices, coefficients = np.array(rows.indices), np.array(rows.coefficients)
    indices[ended] = column
    coefficients[ended] = 0.0
    coefficients[ended, 0] = 1.0
    return SparseRows(indices, coefficients)


def _append(rows: LearnerRows, extra: Rows) -> LearnerRows:
    if isinstance(rows, DenseRows):
        assert isinstance(extra, DenseRows)
        return DenseRows(np.concatenate([rows.values, extra.values]))
    assert isinstance(extra, SparseRows)
    m = rows.indices.shape[1]
    indices = np.concatenate([rows.indices, np.broadcast_to(extra.indices[:, :1], (1, m))])
    if rows.coefficients is None:
        return SparseRows(indices)
    return SparseRows(indices, np.concatenate([rows.coefficients, np.eye(1, m)]))
