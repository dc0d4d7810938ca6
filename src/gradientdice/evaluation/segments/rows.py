"""What the target earns in a group of the log's rows: its value if only these rows paid.

    E[τ r 1{row in the group}],     and its share of time there,   E[τ 1{row in the group}].

Each is the value of another reward, so that every estimator that is linear in the rewards gives it with influence
values of its own, and the groups add up. The default on continuous states takes the Q of its kernel for that; what its
other Qs add to the whole is then nobody's.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from gradientdice.base.errors import InputError
from gradientdice.default.automatic import Automatic
from gradientdice.default.ridge_scores import ridge_scores
from gradientdice.default.search import FunctionSearch
from gradientdice.estimators.answer import Answer, Estimator
from gradientdice.estimators.doubly_robust.combine import combine
from gradientdice.estimators.doubly_robust.cross_fit import FOLDS
from gradientdice.evaluation.segments.part import Group, Part
from gradientdice.evaluation.segments.searched import searched_log
from gradientdice.log.transitions import Transitions
from gradientdice.problem.problem import Problem
from gradientdice.statistics.influence import Influence
from gradientdice.statistics.scores import HeldOut


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
