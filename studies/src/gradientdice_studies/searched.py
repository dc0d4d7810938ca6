"""The default answer at several discounts on one log, with the search's candidates; discounts share each pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gradientdice.default.automatic import Automatic
from gradientdice.default.search import FunctionSearch, searched_functions
from gradientdice.evaluation.estimate import Estimate
from gradientdice.evaluation.evaluate import evaluate_problem
from gradientdice.evaluation.interval import Intervals
from gradientdice.log.transitions import Transitions
from gradientdice.policies import Policy
from gradientdice.problem.problem import Problem


def searched_answers(
    data: Transitions, policy: Policy, discounts: Sequence[float], intervals: Intervals, seed: int
) -> list[tuple[FunctionSearch, Estimate]]:
    """For each discount the search and the estimate that `evaluate` gives."""
    problem = Problem(data, policy, seed=seed)
    answers = []
    for discount, search in zip(discounts, searched_functions(problem, discounts), strict=True):
        searched = replace(problem, search=lambda _, found=search: found)
        answers.append((search, evaluate_problem(searched, Automatic(discount), intervals)))
    return answers
