"""`Problem`: a log, a policy and a function class, checked once; what estimators share is computed on first use.

Every estimator answers from a `Problem`. Building one checks the types, finds the table where states and actions are
few whole numbers, and checks that the log contains what the policy does. Feature rows, moments, folds and the empirical
MDP are made on first use and then shared by all estimators that are given the same problem. What depends on the log
alone (folds, features at the logged pairs, gram matrices, a learned model, tests of the log) is also shared with the
problems of other policies, which `with_policy` makes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from gradientdice.base.effort import Effort, require_effort
from gradientdice.base.errors import InputError, require_callable, require_count, require_flag
from gradientdice.functions import (
    MLP,
    FeatureMap,
    Functions,
    LinearFunctions,
    LoggedTable,
    Tabular,
)
from gradientdice.log.transitions import Transitions
from gradientdice.policies import DiscretePolicy, LoggedPolicy, Policy, SamplingPolicy, TabularPolicy
from gradientdice.problem.absorbing import row_share
from gradientdice.problem.design import Design, whole_design
from gradientdice.problem.empirical import EmpiricalMDP, TabularSolution
from gradientdice.problem.entrance import (
    in_the_policys_words,
    require_functions,
    require_numbered_states,
    require_same_width,
    require_types,
)
from gradientdice.problem.folds import Folds, fold_moments
from gradientdice.problem.logged import require_logged_actions, require_logged_features
from gradientdice.problem.meeting import over_logged_actions, require_function
from gradientdice.problem.moments import Moments
from gradientdice.problem.of_log import FeaturesKey, LogParts
from gradientdice.problem.stream import CACHE_BYTES, CHUNK_ROWS, LogDesign
from gradientdice.problem.support import TableSupport

if TYPE_CHECKING:
    from gradientdice.problem.inputs import NetworkInputs

# A log that shows more pairs than this is not taken for a table by itself: its states may be amounts.
LARGEST_TABLE = 4096
LARGEST_REWARD = 1e100


class Choice(Protocol):
    """What a search for functions returns."""

    @property
    def functions(self) -> LinearFunctions:
        """The functions chosen."""
        ...


@dataclass(frozen=True, eq=False)
class Problem:
    """What every estimator answers from.

    Attributes:
        data: the log.
        policy: the policy to evaluate.
        functions: the function class. Left out, it is a table where states and actions are few whole numbers; else
            the search is asked for one when it is first needed.
        seed: for whatever is random.
        search: what chooses the functions where none are given; None if they must be given.
        progress: whether work on it shows a progress bar on a terminal: None after two seconds, True from the start,
            False never.
        effort: how much work an answer may take, where an estimator leaves that open.
        sharers: how many policies share the work that an answer may take: each is simulated the less, the more there
            are.
        parts: what depends on the log alone; problems of several policies are given the same.
        checked_actions: whether the log is known to contain the policy's actions.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> from gradientdice.problem.problem import Problem
        >>> mdp, target = (
        ...     gd.mdp.boyan_chain("continuing"),
        ...     gd.TabularPolicy(np.tile([0.1, 0.9], (13, 1))),
        ... )
        >>> problem = Problem(
        ...     mdp.sample(2000, np.full((13, 2), 1 / 26), np.random.default_rng(0)), target
        ... )
        >>> problem.functions, problem.moments.num_features
        (Tabular(num_states=13, num_actions=2), 26)
    """

    data: Transitions
    policy: Policy
    functions: Functions | None = None
    seed: int = 0
    search: Callable[[Problem], Choice] | None = None
    progress: bool | None = None
    effort: Effort = Effort.NORMAL
    sharers: int = 1
    parts: LogParts | None = field(default=None, repr=False)
    checked_actions: bool = field(default=False, repr=False)
    _given: Functions | None = field(init=False, repr=False, default=None)
    _fold_rows: dict[int, LogDesign] = field(init=False, repr=False, default_factory=dict)
    _fold_moments: dict[int, list[Moments]] = field(init=False, repr=False, default_factory=dict)
    _empirical: dict[float, EmpiricalMDP] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        require_types(self.data, self.policy)
        object.__setattr__(self, "policy", over_logged_actions(self.data, self.policy, self.functions))
        object.__setattr__(self, "data", in_the_policys_words(self.data, self.policy))
        require_functions(self.functions)
        require_numbered_states(self.data, self.policy)
        require_count("seed", self.seed, low=0)
        if self.progress is not None:
            require_flag("progress", self.progress)
        object.__setattr__(self, "effort", require_effort(self.effort))
        if self.search is not None:
            require_callable("search", self.search, "problem -> choice")
        largest = float(np.abs(self.data.rewards).max())
        if largest > LARGEST_REWARD:
            raise InputError(
                f"rewards as large as {largest:.1e} overflow when they are squared: divide them by a constant, and "
                "multiply the value by it."
            )
        object.__setattr__(self, "_given", self.functions)
        require_count("sharers", self.sharers)
        require_flag("checked_actions", self.checked_actions)
        if not (self.parts is None or isinstance(self.parts, LogParts)):
            raise InputError(f"parts is what another problem of the same log has there, not {self.parts!r:.60}.")
        if self.parts is None or self.parts.data.action_names != self.data.action_names:
            object.__setattr__(self, "parts", LogParts(self.data, self.seed, self.sharers > 1))
        require_function(self.data, self.policy, self.functions)
        if self.functions is None:
            object.__setattr__(self, "functions", table_for(self.data, self.policy))
        # Asked for here, so that a log that lacks what the policy does is refused before any work.
        require_same_width(self.data, self.policy)
        if self.support is None and not self.checked_actions:
            require_logged_actions(self.data, self.policy)
            object.__setattr__(self, "checked_actions", True)

    @cached_property
    def support(self) -> TableSupport | None:
        """The log and the policy restricted to logged pairs, for a table; None for other functions."""
        if not isinstance(self.functions, Tabular):
            return None
        return self.log_parts.pairs(self.functions).support(self.policy)

    @property
    def log_parts(self) -> LogParts:
        """What depends on the log alone."""
        assert self.parts is not None
        return self.parts

    @cached_property
    def chosen(self) -> Choice:
        """The outcome of the search for functions."""
        if self.search is None:
            raise InputError(
                "States that are not few whole numbers need a function class: give functions=RandomFourier(…), "
                "Nystrom(…) or LinearFeatures(…)."
            )
        return self.search(self)

    @property
    def is_searched(self) -> bool:
        """Whether the functions are (or would be) those that the search chooses."""
        return self.functions is None

    @property
    def linear_functions(self) -> LinearFunctions:
        """The function class, for estimators with linear functions."""
        if isinstance(self.functions, MLP):
            raise InputError("Networks are not linear: give Tabular, LinearFeatures, RandomFourier or Nystrom.")
        return self.chosen.functions if self.functions is None else self.functions

    @cached_property
    def rows(self) -> LogDesign:
        """The log's feature rows."""
        if self.support is not None:
            return self._table_rows(self.support, 0)
        return self.design_of(self.linear_functions)

    @cached_property
    def moments(self) -> Moments:
        """The moments of all rows."""
        return Moments.from_design(self.rows)

    @cached_property
    def design(self) -> Design:
        """All feature rows at once, as learners on minibatches need them; the support is checked."""
        rows = self.rows
        design = whole_design(rows.data, rows.policy, rows.functions, np.random.default_rng(self.seed))
        require_logged_features(rows.functions, design)
        return design

    @cached_property
    def inputs(self) -> NetworkInputs:
        """The log as inputs of networks."""
        from gradientdice.problem.inputs import network_inputs

        if not isinstance(self.functions, MLP):
            raise InputError(f"Inputs of networks need functions=MLP(…), not {self.functions!r:.60}.")
        return network_inputs(self.data, self.policy, self.functions.draws, np.random.default_rng(self.seed))

    def folds(self, count: int) -> Folds:
        """The log in folds; the same for every function class and estimator."""
        return self.log_parts.folds(count)

    def fold_rows(self, count: int) -> LogDesign:
        """The feature rows for fits that leave out any one of the folds."""
        if self.support is None or not isinstance(self.functions, Tabular):
            return self.rows
        if count not in self._fold_rows:
            support = self.log_parts.pairs(self.functions, count).support(self.policy)
            self._fold_rows[count] = self._table_rows(support, count)
        return self._fold_rows[count]

    def fold_moments(self, count: int) -> list[Moments]:
        """For each fold, the moments of all the others."""
        if count not in self._fold_moments:
            self._fold_moments[count] = fold_moments(self.fold_rows(count), self.folds(count))
        return self._fold_moments[count]

    def tabular_solution(self, discount: float) -> TabularSolution:
        """The empirical MDP's exact solution, for a table."""
        return self.empirical(discount).solution

    def empirical(self, discount: float) -> EmpiricalMDP:
        """The log as an MDP, for a table."""
        assert self.support is not None and isinstance(self.functions, Tabular)
        if discount not in self._empirical:
            knows = self.rows.knows_initial
            places = self.log_parts.places(self.functions, self.support, absorbs=discount < 1, knows_initial=knows)
            self._empirical[discount] = EmpiricalMDP(self.support, discount, places)
        return self._empirical[discount]

    def unlogged(self, discount: float) -> float | None:
        """The share of the policy's steps that the log does not contain: for a table, else None."""
        if self.support is None:
            return None
        if self.support.complete and (discount < 1 or not self.empirical(discount).is_irregular):
            return 0.0
        return self.tabular_solution(discount).unlogged

    def row_share(self, discount: float) -> float:
        """The log's share of all weight, the absorbing state's own row included."""
        return row_share(self.data, discount)

    def design_of(
        self, functions: LinearFunctions, chunk_rows: int | None = None, cache_bytes: int | None = None
    ) -> LogDesign:
        """The log's feature rows with other functions; features that do not depend on the policy are computed once.

        Args:
            functions: the function class.
            chunk_rows: how many transitions are taken at a time; None for the usual number.
            cache_bytes: up to how many bytes of feature rows are kept; None for the usual number.
        """
        features = self.log_parts.features(FeaturesKey(functions, num_actions_of(self.policy), chunk_rows))
        return LogDesign(
            self.data,
            self.policy,
            functions,
            seed=self.seed,
            chunk_rows=chunk_rows or CHUNK_ROWS,
            cache_bytes=cache_bytes or CACHE_BYTES,
            features=features,
        )

    def with_policy(self, policy: Policy) -> Problem:
        """The same log, functions and seed with another policy; all that depends on the log alone is shared."""
        return replace(self, policy=policy, functions=self._given, checked_actions=False)

    def using(self, functions: Functions) -> Problem:
        """The same log, policy and seed with other functions."""
        return replace(self, functions=functions, search=None)

    def on(self, data: Transitions) -> Problem:
        """The same policy, functions and seed with another version of the log."""
        functions = self.linear_functions if self.functions is None else self.functions
        return replace(self, data=data, functions=functions, search=None, parts=None, checked_actions=False)

    def _table_rows(self, support: TableSupport, folds: int) -> LogDesign:
        assert isinstance(self.functions, Tabular)
        features = self.log_parts.features(FeaturesKey(self.functions, folds=folds, complete=support.complete))
        return LogDesign(support.data, support.policy, support.table, seed=self.seed, features=features)


def table_for(data: Transitions, policy: Policy) -> Tabular | None:
    """A table where the log's states and actions are few whole numbers, else None."""
    if isinstance(policy, TabularPolicy):
        return Tabular(*policy.probabilities.shape)
    whole = data.states.ndim == 1 and data.states.dtype.kind in "iu"
    if isinstance(policy, (DiscretePolicy, LoggedPolicy)) and policy.num_actions and whole:
        # What follows an end is not used and may be anything.
        used = ~data.ended
        highest = max(int(data.states.max()), int(data.next_states[used].max(initial=0)))
        if data.start_states is not None:
            highest = max(highest, int(data.start_states.max()))
        table = Tabular(highest + 1, policy.num_actions)
        if table.num_features <= LARGEST_TABLE or len(np.unique(data.states)) * policy.num_actions <= LARGEST_TABLE:
            return table
    return None


def num_actions_of(policy: Policy) -> int | None:
    """How many discrete actions a policy has; None for continuous ones."""
    return None if isinstance(policy, SamplingPolicy) else policy.num_actions


def describe(functions: FeatureMap | MLP) -> str:
    """A function class in a few words."""
    return repr(functions) if isinstance(functions, (Tabular, LoggedTable, MLP)) else type(functions).__name__
