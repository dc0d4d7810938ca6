"""The behaviour's own value as a side of a difference: from the log's episodes, or doubly robustly without actions.

Where whole episodes show the behaviour's discounted rewards, their mean is its value, and nothing is assumed. Where
time limits cut off a part that matters, or where there are no episodes, the log is taken as a Markov reward process:
the same log without its actions, in which nothing is left to choose. Its value, estimated as a policy's is, has a
ratio and a V of its own and is doubly robust.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gradientdice.data.transitions import Transitions
from gradientdice.effort import Effort
from gradientdice.errors import InputError
from gradientdice.estimators.doubly_robust.automatic import Automatic
from gradientdice.estimators.doubly_robust.search import FunctionSearch, searching
from gradientdice.evaluation.difference import Compared
from gradientdice.evaluation.interval import Intervals, error_sources
from gradientdice.functions import Tabular
from gradientdice.inference.behavior import behavior_shares, behavior_value
from gradientdice.inference.room import Room
from gradientdice.inference.sources import ErrorSources
from gradientdice.policies import DiscretePolicy
from gradientdice.problem.problem import Problem

# Up to this share of the discounted steps may lie beyond the time limits: what was cut is then taken to be like what
# was seen.
UNSEEN = 0.05


def behavior_side(problem: Problem, discount: float) -> Compared | None:
    """The behaviour's value with the sources of its error; None where it is not known."""
    return problem.once_for_log(("behavior side", discount), lambda: _side(problem, discount))


def _side(problem: Problem, discount: float) -> Compared | None:
    data = problem.data
    plain, known = behavior_value(data, discount, Intervals().confidence), behavior_shares(data, discount)
    cut = discount == 1 and data.episodes is not None and _cuts_episodes(data)
    if known is not None and plain is not None and plain.unseen <= UNSEEN and not cut:
        return Compared(ErrorSources(*known, None, Room(), data.digest))
    try:
        return _without_actions(problem, discount)
    except InputError:
        # Too little of a log for that, as a single episode is: what was seen has to do, if anything was.
        return None if known is None else Compared(ErrorSources(*known, None, Room(), data.digest))


def _cuts_episodes(data: Transitions) -> bool:
    """Whether there are several episodes and some do not end: their rows are then not those of one long run."""
    assert data.episodes is not None
    count = len(np.unique(data.episodes))
    return count > 1 and int(data.ended.sum()) < count


def _without_actions(problem: Problem, discount: float) -> Compared:
    """The value of the log's Markov reward process."""
    data = problem.data
    alone = replace(data, actions=np.zeros(len(data), dtype=np.int64), behavior_log_probs=None)
    table = Tabular(problem.functions.num_states, 1) if isinstance(problem.functions, Tabular) else None
    only = DiscretePolicy(lambda states: np.ones((len(states), 1)), 1)
    # A model of the dynamics, which normal effort learns, would take as long again as the policy itself.
    process = Problem(alone, only, table, problem.seed, searching(discount), False, Effort.QUICK)
    answer, intervals, search = Automatic(discount).answer(process), Intervals(), None
    if process.is_searched:
        assert isinstance(process.chosen, FunctionSearch)
        search = process.chosen
        evidence = replace(answer.evidence, allowance=search.allowance(intervals.confidence))
        answer = replace(answer, evidence=evidence)
    sources = error_sources(process, discount, answer, intervals, search)
    return Compared(replace(sources, log=data.digest))
