"""Does the log contain what the policy does? Checked once, when a problem is built.

A table needs every pair that the policy reaches. Where the log lacks some, the policy is restricted to the logged
actions and steps to states without rows go to an initial state; the share of the policy's steps to which that happens
is part of the answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from gradientdice.base.errors import InputError
from gradientdice.functions import LoggedTable, Tabular
from gradientdice.log.transitions import Transitions
from gradientdice.policies import DiscretePolicy, LoggedPolicy, Policy, SamplingPolicy

# Probabilities of one state that differ by more than this are two policies.
SAME = 1e-6


def restricted_to_logged(
    probabilities: Float[np.ndarray, "S A"], counts: Float[np.ndarray, "S A"]
) -> tuple[Float[np.ndarray, "S A"], Float[np.ndarray, " S"]]:
    """A policy restricted to the logged actions, and the probability of unlogged actions in each state.

    The probability of the actions that a state's rows lack is given to those that they have, in the proportions of the
    log. In the proportions of the policy, an action that it hardly takes could become the only one and lead nowhere,
    while a log of trajectories goes on. Where nothing is logged, the first action is taken.

    Args:
        probabilities: the policy.
        counts: how often each pair was logged.
    """
    kept = np.where(counts > 0, probabilities, 0.0)
    missing = np.where(counts > 0, 0.0, probabilities).sum(axis=1)
    nothing = counts.sum(axis=1) <= 0
    logged = np.where(nothing[:, None], np.arange(counts.shape[1]) == 0, counts)
    policy = kept + missing[:, None] * logged / logged.sum(axis=1, keepdims=True)
    return policy / policy.sum(axis=1, keepdims=True), missing


@dataclass(frozen=True, eq=False)
class TableSupport:
    """A log and a policy that keep to the pairs that the log contains.

    Attributes:
        table: the table over the logged pairs.
        data: the log, with steps to states that have no rows sent to an initial state.
        policy: the policy, restricted to logged actions.
        complete: whether the log contains all that the policy reaches, so that nothing was changed.
        redirected: (n,) the rows whose next state was changed.
        redirected_starts: the share of the initial states that were changed.
    """

    table: LoggedTable
    data: Transitions
    policy: Policy
    complete: bool
    redirected: Bool[np.ndarray, " n"]
    redirected_starts: float
    _given: tuple[Transitions, Policy]

    @cached_property
    def probabilities(self) -> Float[np.ndarray, "S A"]:
        """The policy as given, at the table's states; a LoggedPolicy must be a function of the state."""
        data, policy = self._given
        if isinstance(policy, LoggedPolicy):
            return _as_table(data, policy, self.table)
        assert not isinstance(policy, SamplingPolicy)
        return policy.probabilities_at(self.table.states)

    @classmethod
    def of(
        cls, data: Transitions, policy: Policy, table: Tabular, folds: Int[np.ndarray, " n"] | None = None
    ) -> TableSupport:
        """The support of a log; see `LoggedPairs`."""
        return LoggedPairs.of(data, table, folds).support(policy)


@dataclass(frozen=True, eq=False)
class LoggedPairs:
    """Which pairs a log contains, whatever the policy.

    Attributes:
        data: the log.
        table: the table over the logged pairs.
        counts: (S, A) the weight of each pair, 0 for one that does not count as logged.
        lost: which next states and which initial states have no rows.
    """

    data: Transitions
    table: LoggedTable
    counts: Float[np.ndarray, "S A"]
    lost: tuple[np.ndarray, np.ndarray | None]

    @classmethod
    def of(cls, data: Transitions, table: Tabular, folds: Int[np.ndarray, " n"] | None = None) -> LoggedPairs:
        """The pairs of a log.

        Args:
            data: the log.
            table: the table.
            folds: the fold of each row, if any one of them will be left out: a pair counts as logged only if at least
                two folds contain it.

        Raises:
            InputError: if states or actions lie outside the table.
        """
        _check(data, table)
        logged = LoggedTable.of(table, data.states, data.actions)
        counts = _counts(data, logged, folds)
        return cls(data, logged, counts, _lost(data, logged, counts.sum(axis=1) > 0))

    def support(self, policy: Policy) -> TableSupport:
        """The log and a policy that keep to these pairs.

        Raises:
            InputError: if the policy has no probabilities for the table, or the table is not to be restricted and the
                log lacks a pair.
        """
        data, logged, counts = self.data, self.table, self.counts
        _check_policy(policy, logged.table)
        complete = _is_complete(data, policy, logged, counts, self.lost)
        unchanged = np.zeros(len(data), dtype=bool)
        support = TableSupport(logged, data, policy, complete, unchanged, 0.0, (data, policy))
        if complete:
            return support
        if not logged.table.stand_in:
            _refuse(data, policy, logged, counts)
        restricted, _ = restricted_to_logged(support.probabilities, counts)
        changed, redirected, starts = self._redirected
        whole = DiscretePolicy(lambda states: restricted[logged.index(states)], logged.table.num_actions)
        return replace(support, data=changed, policy=whole, redirected=redirected, redirected_starts=starts)

    @cached_property
    def leverage(self) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """The pair of each row, and its part in the weight of the pair, with that of its exact copies."""
        data, table = self.data, self.table
        pair, weights = table.index(data.states) * table.table.num_actions + data.actions, data.row_weights
        total = np.bincount(pair, weights)[pair]
        # A row and its exact copies are one observation.
        own = np.bincount(data.units.original, weights, minlength=len(data))[data.units.original]
        return pair, np.divide(own, total, out=np.zeros_like(total), where=total > 0)

    @cached_property
    def _redirected(self) -> tuple[Transitions, np.ndarray, float]:
        return _redirected(self.data, self.table, self.counts.sum(axis=1) > 0, self.lost)


def _check(data: Transitions, table: Tabular) -> None:
    # What follows an end is not used and may be anything.
    following = np.where(data.ended, data.states, data.next_states) if data.next_states.ndim == 1 else data.next_states
    for name, states in (("states", data.states), ("next_states", following), ("initial_states", data.initial_states)):
        if states is not None:
            table.check(name, states, table.num_states)
    table.check("actions", data.actions, table.num_actions)


def _check_policy(policy: Policy, table: Tabular) -> None:
    if isinstance(policy, SamplingPolicy) or policy.num_actions is None:
        raise InputError(
            "A tabular model needs action probabilities: use TabularPolicy or DiscretePolicy (or next_probabilities of "
            "a LoggedPolicy)."
        )
    if policy.num_actions != table.num_actions:
        raise InputError(f"The policy has {policy.num_actions} actions but the table has {table.num_actions}.")


def _counts(data: Transitions, table: LoggedTable, folds: np.ndarray | None) -> np.ndarray:
    """(S, A) the weight of each pair, 0 for one that a single fold contains if one is to be left out."""
    actions = table.table.num_actions
    pairs = table.index(data.states) * actions + data.actions
    counts = np.bincount(pairs, data.row_weights, len(table.states) * actions)
    if folds is not None:
        present = np.unique(np.column_stack([pairs, folds])[data.row_weights > 0], axis=0)[:, 0]
        counts[np.bincount(present, minlength=len(counts)) < 2] = 0.0
    return counts.reshape(-1, actions)


def _lost(data: Transitions, table: LoggedTable, known: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Which next states and which initial states have no rows."""
    starts = data.start_states
    alive = ~data.ended
    next_lost = np.zeros(len(data), dtype=bool)
    next_lost[alive] = _without_rows(data.next_states[alive], table, known)
    return next_lost, None if starts is None else _without_rows(starts, table, known) & _counted_starts(data)


def _counted_starts(data: Transitions) -> np.ndarray:
    """Which initial states count: not those of episodes that count 0 times."""
    assert data.start_weights is not None
    return data.start_weights > 0


def _without_rows(states: np.ndarray, table: LoggedTable, known: np.ndarray) -> np.ndarray:
    place = table.place(states)
    return (place < 0) | ~known[place]


def _is_complete(
    data: Transitions,
    policy: Policy,
    table: LoggedTable,
    counts: np.ndarray,
    lost: tuple[np.ndarray, np.ndarray | None],
) -> bool:
    """Whether the log contains all that the policy reaches."""
    next_lost, start_lost = lost
    if next_lost.any() or (start_lost is not None and start_lost.any()):
        return False
    if not isinstance(policy, LoggedPolicy):
        assert not isinstance(policy, SamplingPolicy)
        # A state that has rows only in name, all of which count 0 times, is not reached.
        known = counts.sum(axis=1, keepdims=True) > 0
        return not (policy.probabilities_at(table.states)[(counts <= 0) & known] > 0).any()
    reached = [(data.next_states, policy.at_next(slice(None), len(data)), ~data.ended & ~next_lost)]
    if policy.knows_initial and data.start_states is not None and start_lost is not None:
        counted = ~start_lost & _counted_starts(data)
        reached.append((data.start_states, policy.at_initial(len(data.start_states)), counted))
    for states, at_states, used in reached:
        assert isinstance(at_states, DiscretePolicy)
        unlogged = counts[table.index(states[used])] <= 0
        if (at_states.probabilities_at(states)[used][unlogged] > 0).any():
            return False
    return True


def _as_table(data: Transitions, policy: LoggedPolicy, table: LoggedTable) -> np.ndarray:
    """A policy that is known at the log's next and initial states, at the table's states; uniform where not known."""
    actions = table.table.num_actions
    whole = np.full((len(table.states), actions), 1 / actions)
    alive = np.flatnonzero(~data.ended)
    known = [("next_states row", alive, data.next_states[alive], policy.at_next(slice(None), len(data)), alive)]
    if policy.knows_initial and data.start_states is not None:
        starts, numbers = data.start_states, np.arange(len(data.start_states))
        known.append(("initial state", numbers, starts, policy.at_initial(len(starts)), numbers))
    placed = []
    for name, numbers, states, at_states, rows in known:
        assert isinstance(at_states, DiscretePolicy)
        probabilities = at_states.probabilities_at(data.next_states if name.startswith("next") else states)[rows]
        present = np.isin(states, table.states)
        place = table.index(states[present])
        whole[place] = probabilities[present]
        placed.append((name, numbers[present], place, probabilities[present]))
    for name, numbers, place, probabilities in placed:
        apart = np.abs(whole[place] - probabilities).max(axis=1, initial=0) > SAME
        if apart.any():
            raise InputError(
                f"The policy's probabilities at {name} {numbers[np.argmax(apart)]} differ from others for the same "
                "state. The log lacks pairs that the policy takes, and then the policy must be a function of the state."
            )
    return whole


def _redirected(
    data: Transitions, table: LoggedTable, known: np.ndarray, lost: tuple[np.ndarray, np.ndarray | None]
) -> tuple[Transitions, np.ndarray, float]:
    """The log with steps to states without rows sent to the first initial state that has some."""
    next_lost, start_lost = lost
    starts = data.start_states
    given_lost = start_lost if data.initial_states is not None else None
    if not next_lost.any() and (given_lost is None or not given_lost.any()):
        return data, next_lost, 0.0
    usable = data.states if starts is None else starts[_counted_starts(data)]
    usable = usable[~_without_rows(usable, table, known)]
    if not len(usable):
        raise InputError(
            "The log has no row in any of the states that episodes start in: nothing is known of how they begin. "
            "Log more data there."
        )
    first = usable[0]
    # An episode's own first row is logged; only leaving out its fold can lose it, and then the fit refuses it.
    new_starts = starts if starts is None or given_lost is None else np.where(given_lost, first, starts)
    changed = data.redirected(np.where(next_lost, first, data.next_states), new_starts)
    return changed, next_lost, 0.0 if given_lost is None else float(np.average(given_lost, weights=data.start_weights))


def _refuse(data: Transitions, policy: Policy, table: LoggedTable, counts: np.ndarray) -> None:
    """An error that names the first pair that the policy reaches and the log does not contain, if there is one."""
    actions = table.table.num_actions
    used = ~data.ended & (data.row_weights > 0)
    reached = [data.next_states[used]]
    pairs = []
    if isinstance(policy, LoggedPolicy):
        at_next = policy.at_next(slice(None), len(data))
        assert isinstance(at_next, DiscretePolicy)
        pairs.append((data.next_states[used], at_next.probabilities_at(data.next_states)[used]))
        if policy.knows_initial and data.start_states is not None:
            at_initial = policy.at_initial(len(data.start_states))
            assert isinstance(at_initial, DiscretePolicy)
            counted = _counted_starts(data)
            pairs.append((data.start_states[counted], at_initial.probabilities_at(data.start_states)[counted]))
    elif not isinstance(policy, SamplingPolicy):
        if data.start_states is not None:
            reached.append(data.start_states[_counted_starts(data)])
        states = np.unique(np.concatenate(reached))
        pairs.append((states, policy.probabilities_at(states)))
    unlogged: set[int] = set()
    for states, probabilities in pairs:
        place = table.place(states)
        shown = (place >= 0)[:, None] & (counts[place] > 0)
        rows, taken = np.nonzero((probabilities > 0) & ~shown)
        unlogged.update((states[rows].astype(np.int64) * actions + taken).tolist())
    if unlogged:
        raise InputError(table.table.unlogged_message(min(unlogged), len(unlogged)))
