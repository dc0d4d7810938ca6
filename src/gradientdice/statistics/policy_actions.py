"""Which actions a policy takes in the states that it visits, from its own probabilities.

For a table, whose ratio gives each state the mass that the policy has there,

    share(a) = Σ_i m_i π(a|s_i) / Σ_i m_i,   m_i = max(w_i τ_i, 0).

Elsewhere each step is taken in an initial state or in a state that follows another. With q the share of the mass on
rows after which the episode goes on, a step is the first of an episode with probability 1 − γq:

    share(a) = (1 − γq) Σ_k π(a|s0_k) / n0 + γq Σ_i m_i π(a|s'_i) / Σ_i m_i,   i over rows that did not end.

The two are equal where the ratio is exact. Where it is not, the second is the better known: it has the initial states
as they are, and what the ratio gets wrong is carried through one step of the dynamics, which makes it smaller. It also
needs the policy at next and initial states only, where a `LoggedPolicy` is known.

Logged actions that are weighted by the ratio would do as well if it were exact. A ratio that is regularised is pulled
towards 1, and they with it towards the log: they then show actions that the policy never takes. Their distance to the
policy's own actions on the same rows tells how well the ratio, and with it the mass on the states, is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Integer, Num

from gradientdice.base.errors import InputError
from gradientdice.log.transitions import Transitions
from gradientdice.policies import DiscretePolicy, LoggedPolicy, SamplingPolicy, TabularPolicy
from gradientdice.problem.problem import Problem

# At no more states than these is a policy asked, once for its shares and once for their distance: a share is then off
# by 0.5% at most, and asking takes a small part of what an answer takes.
MOST_STATES = 10_000
# With very many actions it is asked at fewer states: so many probabilities take 16 MiB.
MOST_NUMBERS = 2_000_000
# Of a policy that can only be sampled, so many actions are drawn in one state at most.
MOST_DRAWS = 32
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class PolicyActions:
    """The actions that a policy takes: shares of discrete ones, or the mean of each coordinate.

    Attributes:
        codes: (A,) the numbers of the discrete actions; None for others.
        shares: (A,) how often each is taken; None likewise.
        means: (k,) the mean of each coordinate of an action; None for discrete ones.
        distance: half of Σ_a |share of a, policy's own − share of a, logged and weighted by the ratio|; None where
            actions are not discrete.
    """

    codes: Int[np.ndarray, " A"] | None
    shares: Float[np.ndarray, " A"] | None
    means: Float[np.ndarray, " k"] | None
    distance: float | None

    @classmethod
    def of_shares(cls, shares: Float[np.ndarray, " A"], distance: float) -> PolicyActions:
        """Of the actions 0, 1, …, whose shares add up to 1 but for rounding."""
        return cls(np.arange(len(shares)), shares / shares.sum(), None, distance)


def policy_actions(problem: Problem, mass: Float[np.ndarray, " n"], discount: float) -> PolicyActions | None:
    """The actions of a problem's policy; None where no row has mass, or its actions are of another kind than the log's.

    Args:
        problem: the log and the policy.
        mass: the target's mass on each row; what is negative counts as 0.
        discount: γ.
    """
    data, policy, mass = problem.data, problem.policy, np.maximum(mass, 0.0)
    total = float(mass.sum())
    if not (np.isfinite(total) and total > 0):
        return None
    mass = mass / total
    if not are_discrete(data) and isinstance(policy, (TabularPolicy, DiscretePolicy)):
        return None
    at_states = _table_probabilities(problem)
    if at_states is not None:
        assert problem.support is not None
        visits = np.bincount(problem.support.table.index(data.states), weights=mass, minlength=len(at_states))
        shares = visits @ at_states
        return PolicyActions.of_shares(shares, _distance(shares, data.actions, mass))
    visited = _Visited.of(problem, mass, discount)
    if not (visited.following.any() or visited.starts.any()):
        return None
    if isinstance(policy, LoggedPolicy):
        return _of_logged(data, policy, mass, visited)
    if isinstance(policy, SamplingPolicy):
        return _of_draws(problem, policy, visited)
    return _of_probabilities(problem, policy, mass, visited)


def are_discrete(data: Transitions) -> bool:
    """Whether the log's actions are whole numbers, or words for them."""
    return data.actions.ndim == 1 and data.actions.dtype.kind != "f"


@dataclass(frozen=True, eq=False)
class _Visited:
    """How much of the policy's steps is taken in each next state and in each initial state; together they sum to 1."""

    following: Float[np.ndarray, " n"]
    starts: Float[np.ndarray, " n0"]

    @classmethod
    def of(cls, problem: Problem, mass: np.ndarray, discount: float) -> _Visited:
        """Those of a mass on the rows that sums to 1."""
        data, policy = problem.data, problem.policy
        following = discount * np.where(data.ended, 0.0, mass)
        starts = np.zeros(0) if data.start_weights is None else data.start_weights
        if isinstance(policy, LoggedPolicy) and not policy.knows_initial:
            starts = np.zeros(0)
        first = 1 - float(following.sum())
        if starts.any():
            # At discount 1 without ends it is 0 but for rounding, and then no initial state is asked about.
            return cls(following, (first if first > ROUNDING else 0.0) * starts / starts.sum())
        # Without initial states, which discount 1 does not need, all is seen of the steps that follow others.
        return cls(following / (following.sum() or 1.0), starts)

    def some(self, most: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of next states and, counted on from these, of initial states, with what each of them counts."""
        return _some(np.concatenate([self.following, self.starts]), most, seed)


def _some(weights: Float[np.ndarray, " n"], most: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """All places that have weight, or `most` of them in proportion to it; and how much each counts, which sums to 1.

    They are evenly spread over the weight, one at random in each of `most` equal parts: rows at a constant distance
    could all be the same step of their episodes.
    """
    if len(weights) <= most:
        places = np.flatnonzero(weights)
        return places, weights[places] / weights.sum()
    reached = np.cumsum(weights)
    levels = (np.arange(most) + np.random.default_rng([seed, most]).random(most)) / most * reached[-1]
    places = np.minimum(np.searchsorted(reached, levels, side="right"), np.flatnonzero(weights)[-1])
    places, counts = np.unique(places, return_counts=True)
    return places, counts / most


def _states(data: Transitions, places: Int[np.ndarray, " m"]) -> Num[np.ndarray, "m ..."]:
    """The next states and initial states of these numbers."""
    n = len(data)
    starts = places[places >= n] - n
    following = data.next_states[places[places < n]]
    return following if data.start_states is None else np.concatenate([following, data.start_states[starts]])


def _table_probabilities(problem: Problem) -> Float[np.ndarray, "S A"] | None:
    """The policy as it was given at a table's states; None for other functions."""
    if problem.support is None:
        return None
    try:
        return problem.support.probabilities
    except InputError:  # a LoggedPolicy that is no function of the state
        return None


def _of_probabilities(
    problem: Problem, policy: TabularPolicy | DiscretePolicy, mass: np.ndarray, visited: _Visited
) -> PolicyActions:
    """From probabilities at some of the visited states, and at some rows for the distance."""
    data, most = problem.data, max(1, min(MOST_STATES, MOST_NUMBERS // policy.num_actions))
    places, counts = visited.some(most, problem.seed)
    shares = counts @ policy.probabilities_at(_states(data, places))
    rows, weights = _some(mass, most, problem.seed)
    own = weights @ policy.probabilities_at(data.states[rows])
    return PolicyActions.of_shares(shares, _distance(own, data.actions[rows], weights))


def _of_draws(problem: Problem, policy: SamplingPolicy, visited: _Visited) -> PolicyActions:
    """From actions drawn in some of the visited states, several in each where these are few."""
    data = problem.data
    places, counts = visited.some(MOST_STATES, problem.seed)
    times = min(MOST_DRAWS, max(1, MOST_STATES // len(places)))
    drawn = policy.sample(_states(data, np.repeat(places, times)), np.random.default_rng([problem.seed, times]))
    return PolicyActions(None, None, np.repeat(counts / times, times) @ drawn.reshape(len(drawn), -1), None)


def _of_logged(data: Transitions, policy: LoggedPolicy, mass: np.ndarray, visited: _Visited) -> PolicyActions:
    """From arrays, which have a row for each next state and each initial state."""
    if policy.next_probabilities is not None:
        shares = visited.following @ policy.next_probabilities
        if policy.initial_probabilities is not None and len(visited.starts):
            shares = shares + visited.starts @ policy.initial_probabilities
        return PolicyActions.of_shares(shares, _distance(shares, data.actions, mass))
    parts = [(policy.next_actions, visited.following)]
    if len(visited.starts):
        parts.append((policy.initial_actions, visited.starts))
    drawn, counts = [], []
    for actions, weights in parts:
        assert actions is not None
        drawn.append(actions.reshape(-1, actions.shape[2]))
        counts.append(np.repeat(weights / actions.shape[1], actions.shape[1]))
    return PolicyActions(None, None, np.concatenate(counts) @ np.concatenate(drawn), None)


def _distance(shares: np.ndarray, actions: Integer[np.ndarray, " n"], weights: Float[np.ndarray, " n"]) -> float:
    """Half of the sum of absolute differences to the shares of these actions."""
    logged = np.bincount(actions.astype(np.int64), weights=weights, minlength=len(shares))
    own = np.append(shares, np.zeros(len(logged) - len(shares)))
    return 0.5 * float(np.abs(own / own.sum() - logged / logged.sum()).sum())
