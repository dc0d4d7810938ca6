"""Large tables: the closed form by way of the model that the log itself is, in time and memory that follow the log.

With a table and no ridge, the ratio that solves the flow equations is τ = d̂ / d̂_μ, with d̂ the occupancy in the
empirical model, and the matching Q is that model's. Both are sparse linear systems over states: nothing of the size
(S·A)² exists. The answer is the one that the dense closed form gives.

In a large table some pair that the policy takes is always missing from the log. Where the policy takes an action
that the log never shows in that state, it does what the log does there; a step to a state that the log never leaves
goes to the first start. The share of the policy's steps in which that happens is part of the answer.
"""

from __future__ import annotations

import weakref

import numpy as np
from scipy.sparse import csr_array

from gradientdice.data.transitions import Transitions
from gradientdice.errors import starts_missing
from gradientdice.functions.stream import LogDesign
from gradientdice.functions.support import on_what_is_logged
from gradientdice.functions.tabular import Tabular
from gradientdice.inference.direct import DirectAnswer
from gradientdice.inference.doubly_robust import combine
from gradientdice.inference.folds import HeldOut
from gradientdice.mdp.sparse import SparseMDP
from gradientdice.mdp.stationary import closed_classes
from gradientdice.policies import DiscretePolicy, Policy, TabularPolicy

# A set of states that this many rows never leave is taken to be closed.
POCKET_ROWS = 30


def sparse_table_answer(log: LogDesign, discount: float) -> DirectAnswer:
    """The exact solution of the flow equations of a table, with its ratio and influence values."""
    data, functions, (given, policy) = log.data, log.functions, log.given
    assert isinstance(functions, Tabular) and isinstance(policy, (TabularPolicy, DiscretePolicy))
    model = _Model(data, policy, functions, discount, data.start_states if log.knows_initial else None)
    ratio, residual, values, norm, outside = model.solved(data.rewards)
    # Steps that were led elsewhere count like those with an action that is not logged.
    led = model.led | ((given.next_states != data.next_states) & ~model.ended)
    unlogged = model.unlogged + discount * float(model.weights @ (ratio * led)) / model.weights.sum()
    if given.initial_states is not None and data.initial_states is not None:
        unlogged += (1 - discount) * float(np.mean(given.initial_states != data.initial_states))
    notes = ["solved sparsely, as the model that the log itself is"]
    if unlogged > 0:
        notes.append(
            f"in {unlogged:.2g} of its steps the policy takes an action that the log never shows in that state, "
            "or goes to a state that the log never leaves: the interval does not know what is missed there"
        )
    restarts = model.ended if discount == 1 and model.end is not None else None
    starts = None if model.initial is None or (discount == 1 and restarts is None) else values[model.initial]
    scores = HeldOut(ratio, residual, np.full(len(data), norm), starts, restarts)
    answer = combine(discount, model.weights, scores, 1.0)
    return DirectAnswer(
        answer.value,
        ratio,
        float(np.average(ratio, weights=model.weights)) + outside,
        answer.shares,
        repr(functions),
        notes=tuple(notes),
        unlogged=unlogged,
    )


class _LastShare:
    """The share that was asked for last, so that comparing many estimators on one log solves its model once.

    The log is held weakly: it is not kept alive by having been asked about.
    """

    def __init__(self) -> None:
        self._key: tuple[weakref.ref, weakref.ref, Tabular, float] | None = None
        self._share: float | None = None

    def __call__(self, data: Transitions, policy: Policy, functions: Tabular, discount: float) -> float | None:
        """The share of the policy's steps that the log cannot show."""
        if self._key is None or (self._key[0](), self._key[1](), *self._key[2:]) != (data, policy, functions, discount):
            self._share = sparse_table_answer(LogDesign(data, policy, functions), discount).unlogged
            self._key = (weakref.ref(data), weakref.ref(policy), functions, discount)
        return self._share


unlogged_share = _LastShare()


class _Model:
    """The log as an MDP over the states that it shows, and where each row lies in it.

    Where episodes end there is one more state, the last: below discount 1 it absorbs, at discount 1 it is a portal to
    the next start, which takes no time.

    Attributes:
        weights: (n,) of the rows.
        pair, following: (n,) each row's pair and next state in the model.
        initial: (n0,) the initial states in the model, None if the log has none.
        ended: (n,) rows after which the episode ended.
        end: the last state, None if no episode ends.
        policy: (S, A), on what is logged alone.
        missing: (S,) the policy's probability of actions that are not logged there.
        unlogged: the share of the policy's steps to which that happens; known once it is solved.
        led: (n,) steps into a small set of states that the log never leaves, which are led to the first start.
        mdp: the model.
    """

    def __init__(
        self,
        data: Transitions,
        policy: TabularPolicy | DiscretePolicy,
        functions: Tabular,
        discount: float,
        starts: np.ndarray | None,
    ) -> None:
        n, actions = len(data), functions.num_actions
        self.discount = discount
        self.weights = data.row_weights
        self.ended = data.ended
        if starts is None and (discount < 1 or self.ended.any()):
            raise starts_missing(discount)
        every = [data.states, np.where(self.ended, data.states, data.next_states)]
        every += [] if starts is None else [starts]
        for states in every:
            functions.check("states", states, functions.num_states)
        functions.check("actions", data.actions, actions)
        names, where = np.unique(np.concatenate(every), return_inverse=True)
        self.end = len(names) if self.ended.any() else None
        self.pair = where[:n] * actions + data.actions
        self.following = where[n : 2 * n].copy()
        if self.end is not None:
            self.following[self.ended] = self.end
        self.initial = None if starts is None else where[2 * n :]
        size = len(names) + (self.end is not None)
        self.policy = self._policy(policy, names, size, actions)
        self._logged = np.bincount(self.pair, weights=self.weights, minlength=size * actions)
        self.policy, self.missing = on_what_is_logged(self.policy, self._logged.reshape(self.policy.shape))
        if self.end is not None:
            self.missing[self.end] = 0.0
        self.unlogged = 0.0
        self.led = np.zeros(n, dtype=bool)
        self.mdp = self._mdp(data)
        if discount == 1 and self._leads_out_of_pockets():
            self.mdp = self._mdp(data)

    def solved(self, rewards: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
        """τ and r + γV' − Q at each row, V at each state, the average at discount 1, and the absorbing state's mass."""
        mdp, discount = self.mdp, self.discount
        occupancy = mdp.occupancy(self.policy, discount)
        outside = 0.0 if self.end is None else float(occupancy[self.end].sum())
        average = 0.0
        self.unlogged = float(occupancy.sum(axis=1) @ self.missing) / (1 - outside)
        if discount == 1:
            occupancy, outside = occupancy / (1 - outside), 0.0
            real = np.ones(occupancy.shape, dtype=bool)
            if self.end is not None:
                real[self.end] = False
            average = float(np.sum((occupancy * mdp.reward)[real]))
            # With the average taken off every step but the portal's, the chain's own average is 0.
            mdp = SparseMDP(mdp.transition, np.where(real, mdp.reward - average, 0.0), mdp.initial)
        q = mdp.q_values(self.policy, discount)
        values = np.sum(self.policy * q, axis=1)
        own = q.ravel()[self.pair] + average
        share = (self._logged / self.weights.sum())[self.pair]
        # Rows that do not count have no share, and no ratio.
        ratio = np.divide(occupancy.ravel()[self.pair], share, out=np.zeros_like(share), where=share > 0)
        return ratio, rewards + discount * values[self.following] - own, values, average, outside

    def _leads_out_of_pockets(self) -> bool:
        """At discount 1, steps into small sets of states that the log never leaves are led to the first start.

        In a large log some pages have links to each other only, by chance. A set that many rows do not leave is another
        matter: there the average may depend on where an episode starts, and then the solve refuses the log.
        """
        actions = self.policy.shape[1]
        rows = np.bincount(self.pair // actions, minlength=len(self.policy))
        pocket = np.zeros(len(self.policy), dtype=bool)
        for states in closed_classes(self.mdp.state_chain(self.policy)):
            pocket[states] = rows[states].sum() < POCKET_ROWS and self.end not in states
        starts = self.pair // actions if self.initial is None else self.initial
        starts = starts[~pocket[starts]]
        if not pocket.any() or not len(starts):
            return False
        first = starts[0]
        self.led = pocket[self.following] & ~pocket[self.pair // actions]
        self.following[pocket[self.following]] = first
        if self.initial is not None:
            self.initial = np.where(pocket[self.initial], first, self.initial)
        return True

    @staticmethod
    def _policy(policy: TabularPolicy | DiscretePolicy, names: np.ndarray, size: int, actions: int) -> np.ndarray:
        table = np.zeros((size, actions))
        table[:, 0] = 1.0  # in the absorbing state
        table[: len(names)] = policy.probabilities_at(names)
        return table

    def _mdp(self, data: Transitions) -> SparseMDP:
        size, actions = self.policy.shape
        start = np.zeros(size)
        if self.initial is None:
            start[0] = 1.0  # not asked for at discount 1 where nothing ends
        else:
            start[:] = np.bincount(self.initial, minlength=size) / len(self.initial)
        # Nothing reaches a pair that was never logged: it may lead anywhere that is reached.
        empty = np.flatnonzero(self._logged <= 0)
        first = int(self.following[0] if self.initial is None else self.initial[0])
        rows, columns = [self.pair, empty], [self.following, np.full(len(empty), first)]
        shares = [self.weights / np.maximum(self._logged[self.pair], 1e-300), np.ones(len(empty))]
        if self.end is not None:
            inside = empty // actions != self.end
            rows[1], columns[1], shares[1] = empty[inside], columns[1][inside], shares[1][inside]
            places = np.array([self.end]) if self.discount < 1 else np.flatnonzero(start)
            rows.append(np.repeat(self.end * actions + np.arange(actions), len(places)))
            columns.append(np.tile(places, actions))
            shares.append(np.ones(actions) if self.discount < 1 else np.tile(start[places], actions))
        transition = csr_array(
            (np.concatenate(shares), (np.concatenate(rows), np.concatenate(columns))), shape=(size * actions, size)
        )
        reward = np.bincount(self.pair, weights=self.weights * data.rewards, minlength=size * actions)
        reward = np.divide(reward, self._logged, out=np.zeros_like(reward), where=self._logged > 0)
        return SparseMDP(transition, reward.reshape(size, actions), start)
