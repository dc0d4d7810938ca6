"""Parts of a problem that depend on its log alone: made once, shared by the problems of all policies."""

from __future__ import annotations

from dataclasses import dataclass, field

from gradientdice.functions import LinearFunctions, Tabular
from gradientdice.log.transitions import Transitions
from gradientdice.problem.folds import Folds
from gradientdice.problem.places import Places
from gradientdice.problem.stream import SharedFeatures
from gradientdice.problem.support import LoggedPairs, TableSupport


@dataclass(frozen=True)
class FeaturesKey:
    """Rows of features that are the same for all policies.

    Attributes:
        functions: the function class.
        num_actions: of the policy; None where actions are continuous, and for a table, which knows it.
        chunk_rows: how many transitions are taken at a time; None for the usual number.
        folds: that a table's pairs must outlive; 0 for all rows.
        complete: whether a table's log contains all that the policy reaches: else its rows are changed.
    """

    functions: LinearFunctions
    num_actions: int | None = None
    chunk_rows: int | None = None
    folds: int = 0
    complete: bool = True


@dataclass(eq=False)
class LogParts:
    """What a problem computes of its log, whatever the policy.

    Large parts are kept only where several policies share the log: one alone would never read them again.

    Attributes:
        data: the log.
        seed: of the folds.
        shared: whether several policies share the log.
    """

    data: Transitions
    seed: int
    shared: bool = False
    _folds: dict[int, Folds] = field(default_factory=dict, repr=False)
    _pairs: dict[tuple[Tabular, int], LoggedPairs] = field(default_factory=dict, repr=False)
    _places: dict[tuple[Tabular, bool, bool, bool], Places] = field(default_factory=dict, repr=False)
    _features: dict[FeaturesKey, SharedFeatures] = field(default_factory=dict, repr=False)

    def folds(self, count: int) -> Folds:
        """The log in so many folds."""
        if count not in self._folds:
            self._folds[count] = Folds.create(self.data, count, self.seed)
        return self._folds[count]

    def pairs(self, table: Tabular, folds: int = 0) -> LoggedPairs:
        """The pairs that the log contains, or that it still contains without any one of so many folds."""
        key = table, folds
        if key not in self._pairs:
            rows = self.folds(folds).rows if folds else None
            self._pairs[key] = LoggedPairs.of(self.data, table, rows)
        return self._pairs[key]

    def places(self, table: Tabular, support: TableSupport, *, absorbs: bool, knows_initial: bool) -> Places:
        """Where the rows of a table's log lie.

        Args:
            table: the table.
            support: the log as the policy sees it; one that lacks something of what a policy does is changed.
            absorbs: whether the end absorbs.
            knows_initial: whether the policy is known at the initial states.
        """
        starts = support.data.start_states if knows_initial else None

        def make() -> Places:
            return Places.of(support, starts, absorbs=absorbs)

        if not self.shared:
            return make()
        key = table, absorbs, starts is None, support.complete
        if key not in self._places:
            self._places[key] = make()
        return self._places[key]

    def features(self, key: FeaturesKey) -> SharedFeatures:
        """Rows of features for several policies to share."""
        if not self.shared:
            return SharedFeatures()
        return self._features.setdefault(key, SharedFeatures())
