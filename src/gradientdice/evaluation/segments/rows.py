"""Value in a group of the log's rows: what the target would earn if only these rows paid.

    E[τ r 1{row in the group}],     and its share of time there,   E[τ 1{row in the group}].

Each is the value of another reward, so that every estimator that is linear in the rewards gives it with influence
values of its own, and the groups add up. The default on continuous states takes the Q of its kernel for that; what its
other Qs add to the whole belongs to no group.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from gradientdice.base.errors import InputError
from gradientdice.default.automatic import Automatic
from gradientdice.default.ridge_scores import ridge_scores
from gradientdice.default.search import CACHE_BYTES, CHUNK_BYTES, FunctionSearch
from gradientdice.estimators.answer import Answer, Estimator
from gradientdice.estimators.doubly_robust.combine import combine
from gradientdice.estimators.doubly_robust.cross_fit import FOLDS
from gradientdice.log.transitions import Transitions
from gradientdice.problem.problem import Problem
from gradientdice.problem.stream import LogDesign
from gradientdice.statistics.influence import HeldOut, Influence


@dataclass(frozen=True, eq=False)
class Group:
    """A segment of the initial states or of the rows.

    Attributes:
        name: its label.
        members: which of them belong to it.
    """

    name: object
    members: Bool[np.ndarray, " n"]


@dataclass(frozen=True, eq=False)
class Part:
    """A number and each observation's share in its error."""

    value: float
    influence: Influence


def weighted_mean(values: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"]) -> float:
    """The mean; 0 where nothing counts."""
    total = float(weights.sum())
    return float(weights @ values) / total if total > 0 else 0.0


def searched_log(problem: Problem, data: Transitions) -> LogDesign:
    """The feature rows of the chosen candidate, in the chunks of the search, so that sampled actions are the same."""
    search = problem.chosen
    assert isinstance(search, FunctionSearch)
    functions = search.chosen.functions
    rows = max(1_000, CHUNK_BYTES // (8 * (functions.num_features + 1)))
    return LogDesign(data, problem.policy, functions, seed=problem.seed, chunk_rows=rows, cache_bytes=CACHE_BYTES)


def row_parts(problem: Problem, estimator: Estimator, answer: Answer, group: Group) -> tuple[Part, Part]:
    """What the target earns in the rows of a group, and the share of its time there."""
    data = problem.data
    inside = group.members.astype(np.float64)
    return _part(problem, estimator, answer, data.rewards * inside), _part(problem, estimator, answer, inside)


def quotient(earned: Part, time: Part) -> Part:
    """What a step in the group earns on average, with its error to first order."""
    value = earned.value / time.value
    initial = None
    if earned.influence.initial is not None and time.influence.initial is not None:
        initial = (earned.influence.initial - value * time.influence.initial) / time.value
    return Part(
        value,
        Influence(
            (earned.influence.rows - value * time.influence.rows) / time.value,
            initial,
            earned.influence.ratio,
            (earned.influence.residual - value * time.influence.residual) / time.value,
        ),
    )


def _part(problem: Problem, estimator: Estimator, answer: Answer, rewards: Float[np.ndarray, " n"]) -> Part:
    """The value of other rewards."""
    data = replace(problem.data, rewards=rewards)
    if isinstance(estimator, Automatic) and problem.is_searched:
        return _searched(problem, estimator.discount, data)
    # An estimator without functions, such as WIS, must not start a search for some.
    other = problem.on(data) if answer.functions else replace(problem, data=data, parts=None)
    found = estimator.answer(other)
    if found.influence is None:
        raise InputError(
            f"{type(estimator).__name__} gives no influence values here, and so no segments: use the default or "
            f"GradientDICE({estimator.discount:g})."
        )
    return Part(found.value, found.influence)


def _searched(problem: Problem, discount: float, data: Transitions) -> Part:
    """The doubly robust value with the ratio's own ridge for Q."""
    search = problem.chosen
    assert isinstance(search, FunctionSearch)
    (path,) = ridge_scores(searched_log(problem, data), problem.folds(FOLDS), [discount], [search.chosen.ridge])
    restarts = problem.data.terminated if path.initial_value is not None and discount == 1 else None
    initial = None if path.initial_value is None else path.initial_value[0]
    scores = HeldOut(path.ratio[0], path.residual[0], path.norm[0], initial, restarts)
    return Part(*combine(discount, problem.data, scores, problem.row_share(discount)))
