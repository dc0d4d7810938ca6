"""A training run but for its seed and data: schedules, averages, and the numbers by which runs of one program differ.

An estimator is known by its protocol alone and may be any object: its settings are its dataclass fields or its
attributes, and numbers are put in place on a copy, without its checks, which are for real numbers.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gradientdice.base.errors import InputError, require_number
from gradientdice.dice.saddle import SaddleObjective, Terms
from gradientdice.dice.stochastic.functions import FunctionClass, Players

if TYPE_CHECKING:
    import optax


NUMBERS = ("discount", "norm_penalty", "ridge")

# True by structure where objectives can be traced. The estimators are kept: their settings may be keyed by identity.
_TRIED: dict[Any, tuple[SaddleObjective, bool]] = {}


@dataclass(frozen=True)
class Constant:
    """A constant learning rate, α_t = rate."""

    rate: float

    def __post_init__(self) -> None:
        require_number("rate", self.rate, low=0, open_low=True)

    def at(self, step: Any) -> Any:
        """The rate at a step, α_t."""
        return self.rate


@dataclass(frozen=True)
class RobbinsMonro:
    """A falling learning rate, α_t = rate / (1 + t/decay_steps)^power; with ½ < power ≤ 1, Σα_t = ∞ and Σα_t² < ∞.

    Attributes:
        rate: α_0.
        decay_steps: how many steps the rate stays near α_0.
        power: the rate of decay.
    """

    rate: float
    decay_steps: float = 1000.0
    power: float = 0.75

    def __post_init__(self) -> None:
        require_number("rate", self.rate, low=0, open_low=True)
        require_number("decay_steps", self.decay_steps, low=0, open_low=True)
        require_number("power", self.power, low=0.5, high=1, open_low=True)

    def at(self, step: Any) -> Any:
        """The falling rate at a step, α_t."""
        return self.rate * (1 + step / self.decay_steps) ** (-self.power)


@dataclass(frozen=True)
class Cosine:
    """A learning rate that falls to 0 along half a cosine, α_t = rate · ½(1 + cos(π t/steps)).

    Attributes:
        rate: α_0.
        steps: when it ends.
    """

    rate: float
    steps: float

    def __post_init__(self) -> None:
        require_number("rate", self.rate, low=0, open_low=True)
        require_number("steps", self.steps, low=1)

    def at(self, step: Any) -> Any:
        """The rate at a step of the half cosine, α_t."""
        return self.rate * 0.5 * (1 + jnp.cos(jnp.pi * jnp.minimum(step / self.steps, 1.0)))


Schedule = Constant | RobbinsMonro | Cosine


def as_schedule(learning_rate: float | Schedule) -> Schedule:
    """The schedule itself, or a constant one where a plain number is given."""
    return learning_rate if isinstance(learning_rate, (Constant, RobbinsMonro, Cosine)) else Constant(learning_rate)


class Average(NamedTuple):
    """The mean of the iterates so far and, where it counts, their total weight."""

    mean: Players
    total: Any = None


@dataclass(frozen=True)
class ExponentialAverage:
    """Exponential average of the iterates, z̄ ← decay · z̄ + (1 − decay) · z, from the first parameters on."""

    decay: float

    def start(self, players: Players) -> Average:
        """The average before any update."""
        return Average(players)

    def include(self, average: Average, players: Players, rate: Any) -> Average:
        """The exponential average with one more iterate."""
        return Average(jax.tree.map(lambda a, p: self.decay * a + (1 - self.decay) * p, average.mean, players))


@dataclass(frozen=True)
class StepWeightedAverage:
    """Average of the iterates weighted by their steps, z̄ = Σ α_t z_t / Σ α_t, as in Algorithm 1."""

    def start(self, players: Players) -> Average:
        """The empty average, with no weight."""
        return Average(jax.tree.map(jnp.zeros_like, players), jnp.zeros_like(players.norm_multiplier))

    def include(self, average: Average, players: Players, rate: Any) -> Average:
        """The weighted average with one more iterate."""
        total = average.total + rate
        return Average(jax.tree.map(lambda old, new: old + (new - old) * (rate / total), average.mean, players), total)


Averaging = ExponentialAverage | StepWeightedAverage


def settings_of(estimator: Any) -> dict[str, Any]:
    """An estimator's settings by name: its dataclass fields and its attributes."""
    declared = {f.name: getattr(estimator, f.name) for f in fields(estimator)} if is_dataclass(estimator) else {}
    return {**declared, **getattr(estimator, "__dict__", {})}


def bind(template: Any, numbers: dict[str, Any]) -> Any:
    """A copy of an estimator or schedule with other numbers in place of its own."""
    bound = copy.copy(template)
    for name, value in numbers.items():
        object.__setattr__(bound, name, value)
    return bound


def traced_numbers(estimator: SaddleObjective) -> tuple[str, ...]:
    """Names of the estimator's numbers that can be arrays over runs: none if its objective branches on one of them.

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
    """A key that is equal for two estimators that differ in these numbers alone."""
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
    """True if the objective can be differentiated with arrays for its numbers; raise if not even without them."""

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


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """A training run but for its numbers, seed and data.

    Attributes:
        estimator: a template, whose discount, norm_penalty and ridge each run replaces by its own.
        schedule: a template, whose numbers each run replaces by its own.
        functions: the function class.
        steps: the number of updates.
        batch_size: transitions an update.
        record_every: updates between two points of the learning curve: a block.
        optimizer: what turns gradients into moves; None is plain steps.
        clip_norm: the largest norm of a gradient; None is no limit.
        averaging: the average that is the answer; None is the last iterate.
        target_rate: how fast a copy of the critic follows it that is asked at the next states; None is no copy.
        with_ridge: whether any run has a ridge: shrinking the weights touches all of them at every step.
        projected: whether iterates are kept in balls, as in Algorithm 1.
    """

    estimator: SaddleObjective
    schedule: Schedule
    functions: FunctionClass
    steps: int
    batch_size: int = 1
    record_every: int
    optimizer: optax.GradientTransformation | None = None
    clip_norm: float | None = None
    averaging: Averaging | None = None
    target_rate: float | None = None
    with_ridge: bool = False
    projected: bool = False

    @property
    def plain(self) -> bool:
        """True if a step is the gradient times the rate, which can be added where a minibatch has features."""
        return self.optimizer is None and self.clip_norm is None

    def blocks(self) -> Iterator[tuple[int, int]]:
        """The first step and the number of steps of each block; only the last may be shorter."""
        for start in range(0, self.steps, self.record_every):
            yield start, min(self.record_every, self.steps - start)

    def record_steps(self) -> np.ndarray:
        """The steps after which a point of the curve is recorded."""
        ends = [start + length for start, length in self.blocks()]
        return np.array([0, *ends] if self.functions.records_start else ends)

    def key(self) -> tuple[Any, ...]:
        """A key that is equal for two plans that one program serves."""
        estimator = structure_key(self.estimator, traced_numbers(self.estimator))
        rest = {name: value for name, value in vars(self).items() if name not in ("estimator", "schedule")}
        return estimator, type(self.schedule), *rest.values()

    def ridged(self, with_ridge: bool) -> Plan:
        """The plan with or without a ridge."""
        return replace(self, with_ridge=with_ridge)
