"""The feature rows of a search for functions, made again for parts of its answer."""

from __future__ import annotations

from gradientdice.default.search import CACHE_BYTES, CHUNK_BYTES, FunctionSearch
from gradientdice.log.transitions import Transitions
from gradientdice.problem.problem import Problem
from gradientdice.problem.stream import LogDesign


def searched_log(problem: Problem, data: Transitions) -> LogDesign:
    """The feature rows of the chosen candidate, in the chunks of the search, so that sampled actions are the same."""
    search = problem.chosen
    assert isinstance(search, FunctionSearch)
    functions = search.chosen.functions
    rows = max(1_000, CHUNK_BYTES // (8 * (functions.num_features + 1)))
    return LogDesign(data, problem.policy, functions, seed=problem.seed, chunk_rows=rows, cache_bytes=CACHE_BYTES)
