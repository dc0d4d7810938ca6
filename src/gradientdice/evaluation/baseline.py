"""The behaviour's own value as a side of a difference: from the log's episodes, and doubly robustly where they are cut.

Where whole episodes show the behaviour's discounted rewards, their mean is its value, and nothing is assumed. Where
time limits cut off a part that matters, the mean is continued with the value of the states in which episodes were cut,

    ρ = E[(1−γ) Σ_{t<T} γᵗ r_t + γᵀ (1−γ) V(s_T)],

with V that of the log's Markov reward process: the same log without its actions, in which nothing is left to choose.
E[γᵀ V(s_T)] is estimated as a policy's value is, with those states as initial states, a ratio and a V, doubly robustly.
Where that is not precise (many dimensions, few rows), what was cut is taken to be like what was seen, and how far the
mean differs from the rewards of the episodes' second halves is the size of the error that this may make. Rows without
episodes are all taken as a Markov reward process.

On continuous states the process needs a search for features, which may take ten times as long as the policy's value
with given features: the value is then computed when it is first asked for. Where it is the mean of what was seen, or
that of a small table's process, it comes with the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Num

from gradientdice.base.effort import Effort
from gradientdice.base.errors import InputError
from gradientdice.default.automatic import Automatic
from gradientdice.default.search import FunctionSearch, Searching
from gradientdice.evaluation.difference import Compared
from gradientdice.evaluation.interval import Intervals, error_sources
from gradientdice.functions import Tabular
from gradientdice.log.transitions import SameUnits, Transitions
from gradientdice.policies import DiscretePolicy
from gradientdice.problem.problem import Problem
from gradientdice.statistics.behavior import BehaviorValue, behavior_shares, behavior_value
from gradientdice.statistics.intervals import standard_error
from gradientdice.statistics.log_tests import LogTests
from gradientdice.statistics.possible import PossibleRange
from gradientdice.statistics.room import Room
from gradientdice.statistics.sources import ErrorSources, Sources
from gradientdice.statistics.unlogged import Repeats

# Up to this share of the discounted steps may lie beyond the time limits: what was cut is then taken to be like what
# was seen.
UNSEEN = 0.05
# The process of a table of at most so many states is solved with the answer: that takes a fraction of a second, and no
# longer than the policy's own value.
SMALL_TABLE = 1000


@dataclass(frozen=True, eq=False)
class LoggedProcess:
    """The part of a problem that the behaviour's value is computed from.

    Attributes:
        data: the log.
        num_states: of the problem's table; None for other functions.
        seed: for whatever is random.
    """

    data: Transitions
    num_states: int | None
    seed: int

    @classmethod
    def of(cls, problem: Problem) -> LoggedProcess:
        """Take it from a problem."""
        functions = problem.functions
        return cls(problem.data, functions.num_states if isinstance(functions, Tabular) else None, problem.seed)


@dataclass(frozen=True, eq=False)
class LoggedBehavior:
    """The behaviour at one discount, before its value is computed.

    Attributes:
        process: what the value is computed from.
        discount: γ.
        seen: the value from the steps that were seen alone; None where these give none.
    """

    process: LoggedProcess
    discount: float
    seen: BehaviorValue | None

    @property
    def is_seen(self) -> bool:
        """True where the value is the mean of what was seen, with nothing to continue."""
        if self.seen is None:
            return False
        return not _has_own_process(self.process) if self.discount == 1 else self.seen.unseen <= UNSEEN

    @property
    def is_cheap(self) -> bool:
        """True where computing the value takes no longer than an answer: nothing to continue, or a small table.

        Elsewhere it may need a search for features.
        """
        states = self.process.num_states
        return self.is_seen or (states is not None and states <= SMALL_TABLE)

    def solved(self) -> Compared | None:
        """The value with the sources of its error; None if the log does not tell it."""
        process, discount = self.process, self.discount
        data = process.data
        known = behavior_shares(data, discount)
        if self.seen is None or known is None:
            return _attempted(lambda: _process_value(process, discount, None))
        seen = Compared(ErrorSources(*known, None, Room(), data.digest))
        if self.is_seen:
            return seen
        if discount == 1:
            return _attempted(lambda: _process_value(process, discount, None)) or seen
        # Two ways to go on from where episodes were cut: that with the smaller error.
        cut = CutEpisodes.of(data, discount)
        misfit = self.seen.unseen * abs(cut.late_reward(data) - self.seen.value)
        lasting = replace(seen.sources, room=Room(misfit=misfit))
        found = _attempted(lambda: _continued(process, discount, cut))
        return found if found is not None and _size(found.sources) < _size(lasting) else Compared(lasting)


class BehaviorSide:
    """The behaviour's own value as a side of a difference, computed once: with the answer, or when first asked for.

    A copy is the same object, so that all estimates from one log share one computation. While the value is not known,
    the log is held; then the sources of its error alone. Pickling computes the value first, so that no log is pickled.

    Args:
        unsolved: what the value is computed from; an error in computing it is raised by `value`, and the next access
            tries again.

    Example:
        >>> from gradientdice.evaluation.baseline import BehaviorSide
        >>> BehaviorSide.known(None).is_known
        True
    """

    _value: Compared | None = None

    def __init__(self, unsolved: LoggedBehavior | None) -> None:
        self._unsolved = unsolved

    @classmethod
    def known(cls, value: Compared | None) -> BehaviorSide:
        """A side whose value needs no computing; None is a value that the log does not tell."""
        side = cls(None)
        side._value = value
        return side

    @property
    def value(self) -> Compared | None:
        """The value with the sources of its error, computed on the first access; None if the log does not tell it."""
        # The value is stored before what it is computed from is dropped: another thread sees either of the two.
        unsolved = self._unsolved
        if unsolved is not None:
            self._value = unsolved.solved()
            self._unsolved = None
        return self._value

    @property
    def is_known(self) -> bool:
        """True once the value has been computed."""
        return self._unsolved is None

    def __copy__(self) -> BehaviorSide:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> BehaviorSide:
        return self

    def __reduce__(self) -> tuple[Callable[[Compared | None], BehaviorSide], tuple[Compared | None]]:
        return BehaviorSide.known, (self.value,)


@dataclass(eq=False)
class AskedLog:
    """What all answers from one log share: its tests, and what the behaviour earned.

    Whoever asks several questions makes one, and gives it to each answer.

    Attributes:
        process: what the behaviour's value is computed from.
        tests: of the log.
    """

    process: LoggedProcess
    tests: LogTests
    _possible: dict[float, PossibleRange] = field(default_factory=dict, repr=False)
    _seen: dict[tuple[float, float], BehaviorValue | None] = field(default_factory=dict, repr=False)
    _sides: dict[float, BehaviorSide] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, problem: Problem, counted: Repeats | None = None) -> AskedLog:
        """That of a problem's log; `counted` as in `LogTests`."""
        return cls(LoggedProcess.of(problem), LogTests(problem.data, problem.seed, counted))

    def possible(self, discount: float) -> PossibleRange:
        """Between which numbers every value at a discount lies."""
        if discount not in self._possible:
            self._possible[discount] = PossibleRange.of(self.process.data, discount)
        return self._possible[discount]

    def seen_behavior(self, discount: float, confidence: float) -> BehaviorValue | None:
        """The behaviour's value from the steps that were seen alone."""
        key = discount, confidence
        if key not in self._seen:
            self._seen[key] = behavior_value(self.process.data, discount, confidence)
        return self._seen[key]

    def behavior_side(self, discount: float) -> BehaviorSide:
        """The behaviour's value at a discount: known where it is cheap, else computed when it is first asked for."""
        if discount not in self._sides:
            own = LoggedBehavior(self.process, discount, self.seen_behavior(discount, Intervals().confidence))
            self._sides[discount] = BehaviorSide.known(own.solved()) if own.is_cheap else BehaviorSide(own)
        return self._sides[discount]


def _has_own_process(log: LoggedProcess) -> bool:
    """True where the mean reward is that of a table's process: the rows of cut episodes are not one long run's."""
    return log.num_states is not None and _cuts_episodes(log.data)


def _attempted(make: Callable[[], ErrorSources]) -> Compared | None:
    """What is made; None where the log has too little for it, as a single episode has."""
    try:
        return Compared(make())
    except InputError:
        return None


def _size(sources: Sources) -> float:
    """The size of the error: chance and misfit together."""
    return math.hypot(standard_error(sources.samples), sources.room.misfit)


def _cuts_episodes(data: Transitions) -> bool:
    """Whether there are several episodes and some do not end: their rows are then not those of one long run."""
    if data.episodes is None:
        return False
    count = len(np.unique(data.episodes))
    return count > 1 and int(data.ended.sum()) < count


def _continued(log: LoggedProcess, discount: float, cut: CutEpisodes) -> ErrorSources:
    """The mean over episodes of what was seen, continued where it was cut."""
    data = log.data
    drawn = cut.drawn()
    tail = _process_value(log, discount, data.next_states[cut.rows[drawn]])
    units = data.units
    starts = 0.0 if tail.starts is None else units.sums(tail.starts, cut.rows[drawn])
    share = float(cut.left.sum())
    value = float(cut.seen.sum()) + share * tail.value
    # Each episode's own part of both means; episodes that ended have nothing left.
    own = cut.seen - value * cut.weights
    own[cut.places] += cut.left * tail.value
    shares = units.sums(own, data.first_rows) + share * (tail.units + starts)
    return ErrorSources(value, shares, None, tail.room.scaled(share), data.digest)


@dataclass(frozen=True, eq=False)
class CutEpisodes:
    """Episodes and where they were cut.

    Attributes:
        weights: (E,) each episode's share of all episodes.
        seen: (E,) its weighted, (1−γ)-normalised discounted rewards.
        places: (k,) which episodes were cut.
        rows: (k,) the last rows of these.
        left: (k,) γᵀ times the episode's weight: how much lies beyond the cut.
    """

    weights: Float[np.ndarray, " E"]
    seen: Float[np.ndarray, " E"]
    places: Int[np.ndarray, " k"]
    rows: Int[np.ndarray, " k"]
    left: Float[np.ndarray, " k"]

    @classmethod
    def of(cls, data: Transitions, discount: float) -> CutEpisodes:
        """Those of a log with episodes."""
        assert data.episodes is not None
        order = np.argsort(data.episodes, kind="stable")
        _, first, index = np.unique(data.episodes[order], return_index=True, return_inverse=True)
        weights = data.row_weights[order][first]
        weights = weights / weights.sum()
        step = np.arange(len(data)) - first[index]
        paid = (1 - discount) * discount**step * data.rewards[order]
        last = np.append(first[1:], len(data)) - 1
        places = np.flatnonzero(~data.ended[order][last])
        lengths = np.bincount(index)
        return cls(
            weights,
            weights * np.bincount(index, weights=paid),
            places,
            order[last[places]],
            weights[places] * discount ** lengths[places],
        )

    def late_reward(self, data: Transitions) -> float:
        """The mean reward in the second half of the episodes that were cut: what may go on like that."""
        assert data.episodes is not None
        order = np.argsort(data.episodes, kind="stable")
        _, first, index, lengths = np.unique(
            data.episodes[order], return_index=True, return_inverse=True, return_counts=True
        )
        step = np.arange(len(data)) - first[index]
        late = order[np.isin(index, self.places) & (2 * step >= lengths[index] - 1)]
        weights = data.row_weights[late]
        return float(np.average(data.rewards[late], weights=weights if weights.any() else None))

    def drawn(self) -> Int[np.ndarray, " k"]:
        """As many of the cut episodes as there are, in proportion to what is left of each, evenly spread."""
        reached = np.cumsum(self.left) / self.left.sum()
        places = (np.arange(len(self.left)) + 0.5) / len(self.left)
        return np.minimum(np.searchsorted(reached, places), len(self.left) - 1)


def _process_value(log: LoggedProcess, discount: float, starts: Num[np.ndarray, "k ..."] | None) -> ErrorSources:
    """The value of the log's Markov reward process, from its own initial states or from others."""
    data = log.data
    own = {field.name: getattr(data, field.name) for field in fields(Transitions)}
    changed = {
        "actions": np.zeros(len(data), dtype=np.int64),
        "behavior_log_probs": None,
        "action_names": None,
        "action_columns": None,
        "initial_states": data.initial_states if starts is None else starts,
    }
    # Rows are as independent of each other as they were with their actions.
    alone = SameUnits(**{**own, **changed}, known_units=data.units)
    table = None if log.num_states is None else Tabular(log.num_states, 1)
    only = DiscretePolicy(lambda states: np.ones((len(states), 1)), 1)
    # A model of the dynamics, which normal effort learns, would take as long again as the policy itself.
    process = Problem(alone, only, table, log.seed, Searching(discount), False, Effort.QUICK)
    answer, intervals, search = Automatic(discount).answer(process), Intervals(), None
    if process.is_searched:
        assert isinstance(process.chosen, FunctionSearch)
        search = process.chosen
        evidence = replace(answer.evidence, allowance=search.allowance(intervals.confidence))
        answer = replace(answer, evidence=evidence)
    sources = error_sources(LogTests(alone, log.seed), process, discount, answer, intervals, search)
    return replace(sources, log=data.digest)
