"""A right call of everything public: the names in `gd.__all__` and `gd.mdp.__all__`, and the methods that users call.

A name without arguments here is called with what its signature says it needs, as far as that is known.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gradientdice as gd

# Made by the library or by Python itself, or a base of one's own classes: nobody hands anything in.
NOT_CALLED = {
    "Check", "Diagnostics", "Difference", "DiscountCurve", "DiscountRankings", "Estimate", "Estimator", "FileError", "FiniteMDP",
    "InputError", "Posterior", "PosteriorRanking", "Ranking", "ReadOut", "ReturnDistribution", "SaddleEstimator", "ScannedLog",
    "Segments", "Selection", "Solution", "Status", "Verdict",
}  # fmt: skip
# Checked where they are used: what an estimator of one's own returns, and sums that are given to `solve`.
USED = {"Answer", "Evidence", "Influence", "Moments"}
# It holds its folder until it is closed: tests/data/recording has what it refuses.
HELD = {"Recorder"}


class RightCall(NamedTuple):
    """A function, arguments with which it works, and the names of all that it takes."""

    function: Callable[..., Any]
    arguments: dict[str, Any]
    names: list[str]

    def __str__(self) -> str:
        return getattr(self.function, "__qualname__", str(self.function))


def half(states: np.ndarray) -> np.ndarray:
    """Each of two actions with probability one half."""
    return np.full((len(states), 2), 0.5)


def right_calls(folder: Path) -> Iterator[RightCall]:
    """One of each; what is written is written into `folder`."""
    special = _special(folder)
    for module in (gd, gd.mdp):
        for name in module.__all__:
            function = getattr(module, name)
            if callable(function) and name not in NOT_CALLED | USED | HELD:
                yield _call(function, **special.get(name, {}))
    yield from _methods(folder)
    yield from _used()


def _call(function: Callable[..., Any], **given: Any) -> RightCall:
    """With what was given, and of the rest what the signature asks for."""
    signature = inspect.signature(function).parameters.values()
    various = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    taken = [one for one in signature if one.kind not in various and not one.name.startswith("_")]
    needed = {one.name: _usual()[one.name] for one in taken if one.default is one.empty and one.name in _usual()}
    return RightCall(function, {**needed, **given}, [one.name for one in taken])


@cache
def _usual() -> dict[str, Any]:
    """What arguments of these names are everywhere."""
    mdp = gd.mdp.boyan_chain("episodic")
    uniform, policy = np.full((13, 2), 1 / 26), gd.TabularPolicy(np.full((13, 2), 0.5))
    data = mdp.sample(100, uniform, np.random.default_rng(0))
    return {
        "data": data, "policy": policy, "policies": {"half": policy}, "estimator": gd.GradientDICE(0.5), "discount": 0.5,
        "estimators": [gd.LSTDQ(0.5)], "functions": gd.Tabular(13, 2), "solver": gd.PrimalDual(4, 0.1), "mdp": mdp,
        "moments": gd.Problem(data, policy).moments, "data_dist": uniform, "rng": np.random.default_rng(0),
        "features": np.eye(26), "states": [0, 1], "actions": [0, 1], "rewards": [0.0, 1.0], "next_states": [1, 0],
        "function": half, "num_actions": 2, "num_states": 13, "num_features": 3, "bandwidth": 1.0, "steps": 3, "radius": 1.0,
        "learning_rate": 0.1, "probabilities": np.full((2, 2), 0.5), "landmarks": 3, "transition": np.full((2, 2, 2), 0.5),
        "reward": np.zeros((2, 2)), "initial": np.full(2, 0.5), "share": 0.5, "seed": 0, "horizon": 3, "episodes": 2,
    }  # fmt: skip


def _special(folder: Path) -> dict[str, dict[str, Any]]:
    """Arguments with a meaning of their own."""
    usual = _usual()
    log = {name: usual[name] for name in ("states", "actions", "rewards", "next_states")}
    rows = np.full((4, 2), 0.5)
    return {
        "load": {"source": _saved(folder, "good.npz")},
        "scan": {"source": _saved(folder, "good.parquet")},
        "policy": {"obj": [[0.5, 0.5]]},
        "rank": {"policies": {"half": usual["policy"]}, "progress": False},
        "select": {"candidates": {"half": usual["policy"]}, "progress": False},
        "segments": {"discount": 0.5, "by": np.arange(100) % 2, "of": "rows"},
        "posterior": {"discount": 0.5, "draws": 100},
        "return_distribution": _episodes(),
        "evaluate": {"discount": 0.5, "estimator": None, "progress": False},
        "sweep": {"estimators": gd.GradientDICE(0.5), "seeds": 1, "progress": False},
        "Transitions": log,
        "LoggedPolicy": {"next_probabilities": usual["probabilities"]},
        "RobbinsMonro": {"rate": 0.1},
        "Cosine": {"rate": 0.1},
        "Constant": {"rate": 0.1},
        "SparseMDP": {"transition": rows, "reward": np.zeros((2, 2)), "initial": np.full(2, 0.5)},
        "boyan_chain": {"variant": "episodic"},
        "pair_features": {"state_features": np.eye(3)},
        "threshold_policy": {"service_from": 3, "replace_from": 8, "slack": 0.1},
        "model_fail_observations": {"states": [0, 1, 2]},
        "softmax_policy": {"q": np.zeros((2, 2)), "temperature": 1.0},
        "mixed_with_uniform": {"policy": np.full((2, 2), 0.5)},
        "offline_page_rank": {"pages": 20},
        "page_rank_policies": {"mdp": gd.mdp.offline_page_rank(20)},
        "preferential_attachment": {"pages": 20, "links": 2},
        "with_clock": {"horizon": 2},
        "mountain_car": {"positions": 5, "velocities": 4},
        "mountain_car_policies": {"mdp": gd.mdp.mountain_car(5, 4), "velocities": 4},
        "grid_walk": {"side": 3},
        "grid_walk_policies": {"mdp": gd.mdp.grid_walk(3)},
        "four_rooms_policies": {"mdp": gd.mdp.four_rooms()},
        "frozen_lake_policies": {"mdp": gd.mdp.frozen_lake(4)},
        "frozen_lake": {"size": 4},
        "baird_policies": {"mdp": gd.mdp.baird_star()},
        "model_win_policies": {"mdp": gd.mdp.model_win_mdp()},
        "model_fail_policies": {"mdp": gd.mdp.model_fail_mdp()},
        "taxi_policies": {"mdp": gd.mdp.taxi_world()},
    }


def _episodes() -> dict[str, Any]:
    """Whole episodes with the behaviour's probabilities."""
    states = np.zeros(8, dtype=int)
    data = gd.Transitions(
        states, states, np.arange(8.0), states, terminated=[False, True] * 4, episodes=np.arange(8) // 2,
        behavior_log_probs=np.zeros(8),
    )  # fmt: skip
    return {"data": data, "policy": gd.TabularPolicy(np.ones((1, 1)))}


def _saved(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.exists():
        _usual()["data"].save(path)
    return path


def _methods(folder: Path) -> Iterator[RightCall]:
    usual = _usual()
    mdp, data, policy = usual["mdp"], usual["data"], usual["policy"]
    rows, pairs, rng = np.zeros((3, 1)), np.full((13, 2), 0.5), np.random.default_rng(0)
    estimate = gd.evaluate(data, policy, discount=0.5)
    yield _call(data.save, path=folder / "log.npz")
    yield _call(data.split, share=0.5, by="rows")
    yield _call(estimate.report, path=folder / "report.html", force=True)
    yield _call(gd.Moments.exact, policy=policy)
    yield _call(gd.Moments.from_transitions)
    yield from _of_scanned_logs(folder)
    yield from _of_results(folder)
    yield _call(mdp.sample, n=3)
    yield _call(mdp.rollout, policy=pairs)
    for method in (mdp.value, mdp.occupancy, mdp.q_values, mdp.ratio):
        yield _call(method, policy=pairs)
    yield _call(policy.probabilities_at, states=np.array([0, 1]))
    yield _call(gd.DiscretePolicy(half, 2).probabilities_at, states=rows)
    yield _call(gd.SamplingPolicy(lambda states, rng: np.zeros((len(states), 1))).sample, states=rows, rng=rng)
    yield _call(gd.PrimalDual.paper)
    yield _call(gd.MLP.paper)


def _of_scanned_logs(folder: Path) -> Iterator[RightCall]:
    log = gd.scan(_saved(folder, "good.parquet"), batch_rows=30)

    def evaluated(**given: Any) -> gd.Estimate:
        return gd.evaluate(given.pop("log"), **given)

    # The log itself is not given nonsense here: that is tried where it is in memory.
    names = [name for name in inspect.signature(gd.evaluate).parameters if name != "data"]
    given = {"log": log, "policy": _usual()["policy"], "discount": 0.5, "estimator": None, "progress": False}
    evaluated.__qualname__ = "evaluate(scan(…))"
    yield RightCall(evaluated, given, names)
    yield _call(gd.Moments.from_transitions, data=log)


def _of_results(folder: Path) -> Iterator[RightCall]:
    """The methods of rankings, posteriors, distributions and watches."""
    usual, page = _usual(), folder / "page.html"
    data, policies = usual["data"], {"half": usual["policy"], "most": gd.TabularPolicy(np.tile([0.3, 0.7], (13, 1)))}
    ranking = gd.rank(data, policies, 0.5, baseline="half", progress=False)
    posteriors = gd.posterior(data, policies, discount=0.5, draws=100)
    returns = gd.return_distribution(**_episodes(), discount=0.5)
    for one in (ranking, gd.evaluate(data, usual["policy"], discount=[0.5, 0.9])):
        yield _call(one.report, path=page, force=True)
    yield _call(posteriors["half"].interval)
    yield _call(posteriors["half"].probability, above=0.0)
    yield _call(posteriors.difference, name="half", other="most")
    yield _call(returns.cdf, x=1.0)
    yield _call(returns.cvar, p=0.5)
    yield _call(returns.quantile, p=0.5)
    yield _call(returns.interval, what="mean")
    watch = gd.Watch(_episodes()["data"], 0.5)
    yield _call(watch.due, step=1)
    yield _call(watch.look, step=1, agent=_episodes()["policy"])


def _used() -> Iterator[RightCall]:
    """Answers of an estimator of one's own, and moments, each part of which may be nonsense."""
    usual = _usual()
    data, policy = usual["data"], usual["policy"]
    ones = np.ones(len(data))
    right = gd.Answer(value=1.0, influence=gd.Influence(ones * 0, None, ones, ones * 0), ratio=ones)

    def answered(**given: Any) -> gd.Estimate:
        class Own:
            discount = 0.5

            def answer(self, problem: gd.Problem, solver: Any = None) -> gd.Answer:
                return gd.Answer(**given)

        return gd.evaluate(data, policy, Own())

    names = list(inspect.signature(gd.Answer).parameters)
    yield RightCall(answered, {name: getattr(right, name) for name in names}, names)
    for kind, field in ((gd.Influence, "influence"), (gd.Evidence, "evidence")):
        own = list(inspect.signature(kind).parameters)

        def changed(kind: Any = kind, field: str = field, **given: Any) -> gd.Estimate:
            return answered(**{**{name: getattr(right, name) for name in names}, field: kind(**given)})

        changed.__qualname__ = f"answered({field})"
        yield RightCall(changed, {name: getattr(getattr(right, field), name) for name in own}, own)

    def solved(**given: Any) -> gd.Solution:
        return gd.solve(usual["estimator"], gd.Moments(**given))

    sums = list(inspect.signature(gd.Moments).parameters)
    yield RightCall(solved, {name: getattr(usual["moments"], name) for name in sums}, sums)
