"""What an estimator returns, checked like any other input: a user may have written it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gradientdice.base.arrays import as_floats
from gradientdice.base.errors import InputError, require_finite, require_flag, require_number
from gradientdice.dice.solution import Solution, Status
from gradientdice.estimators.answer import Answer, Estimator
from gradientdice.problem.problem import Problem
from gradientdice.statistics.evidence import Evidence
from gradientdice.statistics.influence import Influence

# Their numbers may be left out, or must not be negative.
OPTIONAL, WIDTHS = (
    ("mean_ratio", "misfit", "flow", "unlogged", "left", "outlived"),
    ("allowance", "unlogged_error", "room"),
)


def checked_answer(problem: Problem, estimator: Estimator, answer: object) -> Answer:
    """The answer, with arrays of one row per transition, and finite numbers where it says that all went well.

    Raises:
        InputError: that names the field of the answer, and the estimator.
    """
    _require("The answer", answer, Answer, estimator)
    assert isinstance(answer, Answer)
    _require("status", answer.status, Status, estimator)
    for name in ("functions", "method"):
        _require(name, getattr(answer, name), str, estimator)
    for name in ("notes", "cautions"):
        words = getattr(answer, name)
        if not isinstance(words, (tuple, list)) or not all(isinstance(word, str) for word in words):
            raise InputError(f"{name} of the answer of {estimator!r:.60} must be a tuple of texts, not {words!r:.60}.")
    require_flag("of_search of the answer", answer.of_search)
    _require("evidence", answer.evidence, Evidence, estimator)
    if answer.solution is not None:
        _require("solution", answer.solution, Solution, estimator)
    if not answer.status.ok:
        return answer  # what did not end well may hold anything, and says so
    rows = len(problem.data)
    return replace(
        answer,
        value=require_number("value of the answer", answer.value),
        ratio=None if answer.ratio is None else _column("ratio of the answer", answer.ratio, rows),
        influence=_influence(answer.influence, problem, estimator),
        evidence=_evidence(answer.evidence, rows),
    )


def _influence(influence: Any, problem: Problem, estimator: Estimator) -> Influence | None:
    if influence is None:
        return None
    _require("influence", influence, Influence, estimator)
    rows, starts = len(problem.data), problem.data.start_states
    columns: dict[str, Any] = {
        name: _column(f"influence.{name}", getattr(influence, name), rows) for name in ("rows", "ratio", "residual")
    }
    initial = influence.initial
    columns["initial"] = (
        None if initial is None or starts is None else _column("influence.initial", initial, len(starts))
    )
    return replace(influence, **columns)


def _evidence(evidence: Evidence, rows: int) -> Evidence:
    given = {name: getattr(evidence, name) for name in (*OPTIONAL, *WIDTHS)}
    low = {name: 0.0 for name in WIDTHS}
    numbers = {
        name: require_number(f"evidence.{name}", value, low=low.get(name, -np.inf), infinite=True)
        for name, value in given.items()
        if value is not None or name in WIDTHS
    }
    for name in ("bellman", "markov"):
        require_flag(f"evidence.{name}", getattr(evidence, name))
    density = evidence.density
    return replace(evidence, **numbers, density=None if density is None else _column("evidence.density", density, rows))


def _column(name: str, value: Any, rows: int) -> np.ndarray:
    """One finite number per row."""
    array = value if type(value) is np.ndarray and value.dtype == np.float64 else as_floats(name, value)
    if array.shape != (rows,):
        raise InputError(f"{name} must have shape ({rows},), one number per row, not {array.shape}.")
    require_finite(name, array)
    return array


def _require(name: str, value: object, kind: type, estimator: Estimator) -> None:
    if not isinstance(value, kind):
        raise InputError(f"{name} of {estimator!r:.60} must be of type {kind.__name__}, not {value!r:.60}.")
