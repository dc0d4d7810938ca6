"""Is the recorded state the state? Three signs that it is not.

With the whole state recorded, r + γV' − Q is a martingale difference: nothing that came before a step helps to predict
it. If that holds given every past, Q is right also for the process that is not recorded, and so is the value; if the
past does help, it is not. The second sign: the probability with which an action was taken, where it is logged, is a
function of what the behaviour saw; if it jumps about within a pair (s, a) of one episode, the behaviour saw more. The
third: what follows a pair is another thing in one part of the log than in another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from gradientdice.base.errors import InputError
from gradientdice.log.transitions import Transitions
from gradientdice.problem.problem import Problem
from gradientdice.statistics.checks import Check, below
from gradientdice.statistics.kernel_history import MOST_STEPS, KernelHistory
from gradientdice.statistics.past import Past
from gradientdice.statistics.table_history import TableChange, TableHistory

# Honest tables exceed the first in about 1% of logs. With continuous states what the regressions on (s, a) miss
# looks like memory too, and more is needed.
TABLE_THRESHOLDS = (3.5, 8.0)
KERNEL_THRESHOLDS = (5.0, 10.0)
# Deviations of a probability within a pair and an episode: rounding, or a policy that learns as it goes, stays below
# the first.
PROBABILITY_THRESHOLDS = (0.02, 0.1)
# A log in which each pair comes so often is a table, whatever its states look like.
VISITS = 5
# Parts of the log that are compared with each other, and the rows that are looked at.
ERAS = 4
MOST_ROWS = 20_000
# With fewer repeated pairs their deviation says nothing.
FEWEST_REPEATS = 30
REMEDY = (
    "add history to the state (earlier observations and actions), or use the trajectory estimators (PDIS, WPDIS, DR), "
    "which do not need it"
)


# From residuals to their dependence on the past and on the era.
History = Callable[[np.ndarray | None], tuple[float, float]]


@dataclass(eq=False)
class MarkovTest:
    """Signs that the recorded state is not the whole state; what the log alone decides is computed once.

    Attributes:
        data: the log, whose rows must be in time order.
        seed: for whatever is random.
    """

    data: Transitions
    seed: int

    def checks(self, problem: Problem, discount: float, residual: Float[np.ndarray, " n"] | None) -> list[Check]:
        """The checks that the log allows.

        Args:
            problem: the log and the policy.
            discount: γ.
            residual: r + γV' − Q of the answer; None if it has none. A table's own is used where there is a table.
        """
        checks = []
        if self._deviation is not None:
            checks.append(_probability_check(self._deviation))
        if problem.support is not None:
            thresholds = TABLE_THRESHOLDS
            value, change = self._table_values(problem, discount)
        else:
            history, thresholds = self._history
            value, change = (None, None) if history is None else history(residual)
        if value is not None:
            checks.append(_past_check(value, thresholds))
        if change is not None:
            checks.append(_change_check(change, thresholds))
        return checks

    @cached_property
    def _deviation(self) -> float | None:
        return probability_deviation(self.data)

    @cached_property
    def _history(self) -> tuple[History | None, tuple[float, float]]:
        return _history(self.data, self.seed)

    @cached_property
    def _table_history(self) -> Callable[[np.ndarray], float] | None:
        return _table_history(self.data, self.seed)

    @cached_property
    def _table_change(self) -> Callable[[np.ndarray], float]:
        return _table_change(self.data)

    def _table_values(self, problem: Problem, discount: float) -> tuple[float | None, float | None]:
        """The dependence on the past and on the era; None where it cannot be looked at."""
        try:
            residual = problem.tabular_solution(discount).residual
        except InputError:
            # Some estimators answer where the flow equations have no solution; their own checks speak then.
            return None, None
        history = self._table_history
        return None if history is None else history(residual), self._table_change(residual)


def probability_deviation(data: Transitions) -> float | None:
    """How much the behaviour's probability of a pair (s, a) changes from one visit in a run to the next.

    It is half the mean squared change, as a standard deviation. A behaviour that is another one in each episode, or
    changes slowly, hardly moves it. None if no probabilities were logged, actions are not discrete, or too few visits
    are repeated.
    """
    discrete = data.states.ndim == 1 and data.actions.ndim == 1 and data.actions.dtype.kind in "iu"
    if data.behavior_log_probs is None or not discrete:
        return None
    past = Past.of(data)
    if past is None:
        return None
    rows = past.rows
    order = np.lexsort((np.arange(len(rows)), data.actions[rows], data.states[rows], past.start))
    keys = np.column_stack([past.start, data.states[rows], data.actions[rows]])[order]
    repeated = np.all(keys[1:] == keys[:-1], axis=1)
    if repeated.sum() < FEWEST_REPEATS:
        return None
    changes = np.diff(np.exp(data.behavior_log_probs[rows][order]))[repeated]
    return float(np.sqrt(np.mean(changes**2) / 2))


def _past_check(value: float, thresholds: tuple[float, float]) -> Check:
    return below(
        "dependence on the past",
        value,
        *thresholds,
        "in standard deviations of noise: what happened before a step helps to predict what follows it, so that the "
        "recorded state is not the whole state",
        REMEDY,
        noise=1.0,
    )


def _probability_check(deviation: float) -> Check:
    return below(
        "change of the behaviour's probability within a pair",
        deviation,
        *PROBABILITY_THRESHOLDS,
        "in the same state an action had other probabilities within one episode: the behaviour saw something that the "
        "recorded state lacks, or it changed as it went",
        REMEDY,
    )


def _change_check(value: float, thresholds: tuple[float, float]) -> Check:
    return below(
        "change over the log",
        value,
        *thresholds,
        "in standard deviations of noise: the same state and action led to something else in other parts of the log, "
        "so that the world changed, or something that changed is not recorded",
        "keep the part of the log that is like today, or add what changed to the state",
        noise=1.0,
    )


def _eras(count: int) -> np.ndarray:
    """The part of the log that each row lies in, in the order of the rows."""
    return np.arange(count) * ERAS // count


def _table_change(data: Transitions) -> Callable[[np.ndarray], float]:
    """From a table's residuals to their dependence on the era."""
    rows = np.linspace(0, len(data) - 1, min(len(data), MOST_ROWS)).astype(np.int64)
    change = TableChange(_eras(len(data))[rows], data.states[rows], data.actions[rows], data.rewards[rows])
    return lambda residual: change.score(residual[rows])


def _table_history(data: Transitions, seed: int) -> Callable[[np.ndarray], float] | None:
    """From a table's residuals to their dependence on the past; None if rows are not in time order."""
    past = Past.of(data)
    if past is None:
        return None
    rows = past.rows
    history = TableHistory(past, data.states[rows], data.actions[rows], data.rewards[rows], seed)
    return lambda residual: history.dependence(residual[rows])


def _history(data: Transitions, seed: int) -> tuple[History | None, tuple[float, float]]:
    """From residuals to their dependence on the past and on the era, and its thresholds.

    None where the log has too little of it.
    """
    past = Past.of(data, MOST_STEPS)
    # Regressions on hundreds of features need some steps.
    if past is None or len(past.rows) < MOST_STEPS // 10:
        return None, KERNEL_THRESHOLDS
    codes, eras = _repeated(data, past), _eras(len(data))
    if codes is None:
        history = KernelHistory(data, past, seed)
        return lambda residual: (history.dependence(residual), history.change(eras, residual)), KERNEL_THRESHOLDS
    rows, rewards = past.rows, data.rewards[past.rows]
    table, change = TableHistory(past, *codes, rewards, seed), TableChange(eras[rows], *codes, rewards)

    def in_table(residual: np.ndarray | None) -> tuple[float, float]:
        own = rewards if residual is None else residual[rows]
        return table.dependence(own), change.score(own)

    return in_table, TABLE_THRESHOLDS


def _repeated(data: Transitions, past: Past) -> tuple[np.ndarray, np.ndarray] | None:
    """States and actions as numbers, where the same ones come again and again; else None."""
    codes = []
    for array in (data.states, data.actions):
        _, code = np.unique(array[past.rows].reshape(len(past.rows), -1), axis=0, return_inverse=True)
        codes.append(code.ravel())
    states, actions = codes
    distinct = len(np.unique(states * (actions.max() + 1) + actions))
    return (states, actions) if distinct <= len(states) // VISITS else None
