"""Wrong calls: every argument of every public call, given each of many things that it is not."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import gradientdice as gd


class Something:
    """A class that has nothing that anyone asks for."""


JUNK: tuple[Any, ...] = (
    None, 0, -1, 1.5, float("nan"), float("inf"), True, "x", "", b"x", [], [1], (), {}, {"a": 1}, set(), object(),
    Something, Something(), lambda *given: None, np.zeros(0), np.array(1.0), np.array(["a"]), 1j, 10**30, 10**400,
    [None], np.full((2, 2), np.nan), range(3), gd, ..., np.ma.MaskedArray([1.0, 2.0], [True, False]), [[1], [1, 2]],
)  # fmt: skip

# Trained with JAX, which takes seconds to compile: here only what is refused before that is tried.
HARMLESS_TO_SWEEP = ("seeds", "progress", "max_bytes", "checkpoint")


class Call(NamedTuple):
    """A call with one wrong argument."""

    function: Callable[..., Any]
    argument: str
    arguments: dict[str, Any]

    def __str__(self) -> str:
        name = getattr(self.function, "__qualname__", str(self.function))
        return f"{name}({self.argument}={self.arguments[self.argument]!r:.40})"


def wrong_calls() -> Iterator[Call]:
    """All of them; some are right, as None is where an argument may be left out."""
    for function, right, names in _right_calls():
        for name in names:
            for value in JUNK:
                if function is gd.sweep and name in HARMLESS_TO_SWEEP and not _refused_early(name, value):
                    continue
                yield Call(function, name, {**right, name: value})


def _refused_early(name: str, value: Any) -> bool:
    if name in ("progress", "max_bytes", "checkpoint"):
        return not (value is None or isinstance(value, (bool, int, str)))
    return not isinstance(value, (int, list, range, tuple)) or value == []


def _right_calls() -> Iterator[tuple[Callable[..., Any], dict[str, Any], list[str]]]:
    mdp, half = gd.mdp.boyan_chain("episodic"), np.full((13, 2), 0.5)
    uniform, rng = np.full((13, 2), 1 / 26), np.random.default_rng(0)
    data, policy = mdp.sample(100, uniform, rng), gd.TabularPolicy(half)
    both = {"data": data, "policy": policy}
    table, solver = gd.Tabular(13, 2), gd.PrimalDual(4, 0.1)
    numbers: dict[str, Any] = {"discount": 0.5, "function": lambda *given: np.zeros((2, 1)), "learning_rate": 0.1}

    def each(function: Callable[..., Any], right: dict[str, Any], *names: str):
        return function, right, list(names)

    options = ("functions", "confidence", "seed", "effort")
    yield each(
        gd.evaluate, {**both, "discount": 0.5}, *both, "estimator", "discount", "solver", "interval", "progress",
        "checkpoint", *options,
    )  # fmt: skip
    yield each(gd.compare, {**both, "estimators": [gd.LSTDQ(0.5)]}, *both, "estimators", *options)
    trained = {**both, "estimators": gd.GradientDICE(0.5), "functions": table, "solver": solver, "seeds": 1}
    yield each(gd.sweep, {**trained, "progress": False}, *trained, *HARMLESS_TO_SWEEP[1:])
    yield each(gd.load, {"source": "/nowhere/log.npz"}, "source", "columns", "csv", "ends")
    log = {"states": [0, 1], "actions": [0, 1], "rewards": [0.0, 1.0], "next_states": [1, 0]}
    yield each(gd.load, {"source": log}, "source", "columns", "csv", "ends")
    yield each(
        gd.policy, {"obj": [[0.5, 0.5]]}, "obj", "deterministic", "num_actions", "outputs", "params", "normalizer"
    )
    watched = ("data", "discount", "every", "patience", "deterministic", "effort", "seed")
    yield each(gd.Watch, {"data": data, "discount": 0.5}, *watched)
    yield each(gd.Transitions, log, *gd.Transitions.__dataclass_fields__)
    yield each(
        gd.solve, {"estimator": gd.GradientDICE(0.5), "moments": gd.Problem(**both).moments}, "estimator", "moments"
    )
    yield each(gd.Moments.from_transitions, {**both, "functions": table}, *both, "functions", "seed", "chunk_rows")
    exact = {"mdp": mdp, "policy": policy, "features": np.eye(26), "data_dist": uniform}
    yield each(gd.Moments.exact, exact, *exact)
    model = {"transition": np.ones((1, 1, 1)), "reward": np.zeros((1, 1)), "initial": np.ones(1)}
    yield each(gd.mdp.TabularMDP, model, *model)
    yield each(mdp.sample, {"n": 3, "data_dist": uniform, "rng": rng}, "n", "data_dist", "rng")
    rolled = {"policy": half, "episodes": 2, "horizon": 3, "rng": rng}
    yield each(mdp.rollout, rolled, *rolled, "noise", "terminal")
    for method in (mdp.value, mdp.occupancy, mdp.q_values):
        yield each(method, {"policy": half, "discount": 0.5}, "policy", "discount")
    yield each(mdp.ratio, {"policy": half, "discount": 0.5, "data_dist": uniform}, "policy", "discount", "data_dist")
    yield each(data.split, {"share": 0.5, "by": "rows"}, "share", "by", "seed")
    kinds: dict[str, Any] = {**gd.ESTIMATORS, **gd.RELATED}
    classes = [
        gd.TabularPolicy, gd.DiscretePolicy, gd.SamplingPolicy, gd.LoggedPolicy, gd.Tabular, gd.LinearFeatures,
        gd.RandomFourier, gd.Nystrom, gd.MLP, gd.PrimalDual, gd.ProjectedPrimalDual, gd.ClosedForm, gd.Constant,
        gd.Cosine, gd.RobbinsMonro, gd.ConstantInit, gd.UniformInit, gd.BootstrapInterval, gd.NormalInterval,
        gd.SkewInterval, gd.EmpiricalLikelihood, gd.Problem, gd.Automatic, gd.CSV, *kinds.values(),
    ]  # fmt: skip
    given: dict[Any, dict[str, Any]] = {
        gd.Problem: both, gd.TabularPolicy: {"probabilities": half}, gd.LoggedPolicy: {"next_probabilities": half}
    }  # fmt: skip
    for kind in classes:
        fields = [field for field in dataclasses.fields(kind) if field.init and not field.name.startswith("_")]
        needed = [field.name for field in fields if _is_needed(field)]
        yield each(kind, given.get(kind) or {name: numbers.get(name, 3) for name in needed}, *(f.name for f in fields))


def _is_needed(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
