"""An estimator's numbers as arrays over runs, so that cases that differ in numbers alone share a program.

An estimator is known by its protocol alone and may be any object: its settings are its dataclass fields or its
attributes, and numbers are put in place on a copy, without its checks, which are for real numbers.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gradientdice.base.errors import InputError
from gradientdice.dice.saddle import SaddleObjective, Terms
from gradientdice.dice.stochastic.schedules import Schedule

NUMBERS = ("discount", "norm_penalty", "ridge")

# Whether objectives of this structure can be traced. The estimators are kept: their settings may be keyed by identity.
_TRIED: dict[Any, tuple[SaddleObjective, bool]] = {}


def settings_of(estimator: Any) -> dict[str, Any]:
    """What an estimator was built with, by name."""
    declared = {f.name: getattr(estimator, f.name) for f in fields(estimator)} if is_dataclass(estimator) else {}
    return {**declared, **getattr(estimator, "__dict__", {})}


def bind(template: Any, numbers: dict[str, Any]) -> Any:
    """A copy with other numbers in place of its own."""
    bound = copy.copy(template)
    for name, value in numbers.items():
        object.__setattr__(bound, name, value)
    return bound


def traced_numbers(estimator: SaddleObjective) -> tuple[str, ...]:
    """Which of the estimator's numbers can be arrays over runs: none if its objective branches on one of them.

    Raises:
        InputError: if the objective cannot be differentiated by JAX.
    """
    names = tuple(name for name in NUMBERS if _is_settable_number(estimator, name))
    key = structure_key(estimator, names)
    found = _TRIED.get(key)
    if found is None:
        if len(_TRIED) >= 1000:
            _TRIED.clear()
        found = _TRIED[key] = estimator, _can_trace(estimator, names)
    return names if found[1] else ()


def structure_key(estimator: SaddleObjective, numbers: Sequence[str]) -> tuple[Any, ...]:
    """What is equal for two estimators that differ in these numbers alone."""
    settings = settings_of(estimator)
    rest = tuple((name, _hashable(settings[name])) for name in sorted(settings) if name not in numbers)
    return type(estimator), tuple(numbers), rest


def hyper_parameters(estimators: Sequence[SaddleObjective], schedules: Sequence[Schedule]) -> dict[str, np.ndarray]:
    """One array for each number of the cases' estimators and schedules."""
    names = [name for name in NUMBERS if _is_number(getattr(estimators[0], name, None))]
    hyper = {name: np.array([getattr(e, name) for e in estimators], dtype=np.float32) for name in names}
    for name in vars(schedules[0]):
        hyper[name] = np.array([getattr(s, name) for s in schedules], dtype=np.float32)
    if not all(np.isfinite(array).all() for array in hyper.values()):
        raise InputError("The stochastic solvers need finite hyper-parameters: norm_penalty=inf is for ClosedForm.")
    return hyper


def _can_trace(estimator: SaddleObjective, names: tuple[str, ...]) -> bool:
    """Whether the objective can be differentiated with arrays for its numbers; an error if not even without them."""

    def slope(numbers: dict[str, Any], point: Any) -> Any:
        bound = bind(estimator, numbers)
        return jax.grad(lambda raw, *rest: bound.objective(Terms(bound.ratio(raw), *rest)))(*point)

    point, failure = [jnp.ones(())] * 5, None
    for numbers in ({name: jnp.ones(()) for name in names}, {}):
        try:
            jax.eval_shape(slope, numbers, point)
            return bool(numbers)
        except (jax.errors.JAXTypeError, TypeError) as error:
            failure = error
    raise InputError(
        f"JAX cannot differentiate the objective of {type(estimator).__name__}: write `objective` and `ratio` with "
        "arithmetic operators and jax.numpy, elementwise over the fields of the terms."
    ) from failure


def _is_settable_number(estimator: Any, name: str) -> bool:
    computed = isinstance(getattr(type(estimator), name, None), property)
    return not computed and _is_number(getattr(estimator, name, None))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _hashable(value: Any) -> Any:
    """The value, or its identity if it has no hash: arrays, lists."""
    try:
        hash(value)
    except TypeError:
        return type(value), id(value)
    return value
