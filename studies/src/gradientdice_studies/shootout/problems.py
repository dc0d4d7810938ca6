"""The benchmarks: a log of a given size and overlap, the policy to evaluate, functions, and the truth.

Overlap is the share of the behaviour's choices that are the target's own: 0 is the benchmark's own behaviour policy, 1
would be the target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gradientdice.functions import LinearFunctions as Functions
from gradientdice.functions.linear import LinearFeatures
from gradientdice.functions.tabular import Tabular
from gradientdice.log.split import some_rows
from gradientdice.log.transitions import Transitions
from gradientdice.mdp import (
    FiniteMDP,
    baird_features,
    baird_policies,
    baird_star,
    boyan_chain,
    four_rooms,
    four_rooms_policies,
    frozen_lake,
    frozen_lake_policies,
    grid_walk,
    grid_walk_policies,
    model_fail_mdp,
    model_fail_observations,
    model_fail_policies,
    model_win_mdp,
    model_win_policies,
    mountain_car,
    mountain_car_policies,
    offline_page_rank,
    page_rank_policies,
    taxi_policies,
    taxi_world,
)
from gradientdice.policies import Policy, TabularPolicy

Rng = np.random.Generator
SIZES = (1_000, 10_000, 100_000)
HORIZON, NOISE = 100, 0.1


@dataclass(frozen=True, eq=False)
class Problem:
    """A benchmark.

    Attributes:
        name: its name.
        discounts: what it is evaluated at; 1 is the average reward.
        sizes: transitions in a log.
        log: (rows, overlap, rng) -> a log.
        policy: the policy to evaluate.
        functions: the function class that all estimators get.
        truth: discount -> the value and its standard error, 0 where it is exact.
        tabular: whether the truth is exact and the functions are a table.
        large: whether one log takes long.
    """

    name: str
    discounts: tuple[float, ...]
    sizes: tuple[int, ...]
    log: Callable[[int, float, Rng], Transitions]
    policy: Policy
    functions: Functions
    truth: Callable[[float], tuple[float, float]]
    tabular: bool = True
    large: bool = False


def mixed(target: np.ndarray, behavior: np.ndarray, overlap: float) -> np.ndarray:
    """The behaviour with some of the target's own choices."""
    return overlap * target + (1 - overlap) * behavior


def first_rows(data: Transitions, rows: int) -> Transitions:
    """A log cut to a number of rows; the last episode may be cut short."""
    return some_rows(data, np.arange(min(rows, len(data))))


def _tabular(
    name: str,
    mdp: FiniteMDP,
    policies: tuple[np.ndarray, np.ndarray],
    *,
    discounts: tuple[float, ...] = (0.95, 1.0),
    sizes: tuple[int, ...] = SIZES,
    terminal: int | None = None,
    horizon: int = HORIZON,
    functions: Functions | None = None,
) -> Problem:
    """A finite MDP logged in episodes; an episode that is cut after the horizon has not ended."""
    target, behavior = policies
    states = mdp.num_states if terminal is None else terminal

    def log(rows: int, overlap: float, rng: Rng) -> Transitions:
        policy = mixed(target, behavior, overlap)
        # Episodes that end are shorter than the horizon: enough of them for the rows.
        episodes = -(-rows // horizon)
        data = mdp.rollout(policy, episodes, horizon, rng, terminal=terminal, noise=NOISE)
        while len(data) < rows:
            episodes *= 2
            data = mdp.rollout(policy, episodes, horizon, rng, terminal=terminal, noise=NOISE)
        return first_rows(data, rows)

    return Problem(
        name,
        discounts,
        sizes,
        log,
        TabularPolicy(target[:states]),
        functions or Tabular(states, mdp.num_actions),
        lambda discount: (mdp.value(target, discount), 0.0),
    )


def _boyan() -> Problem:
    policies = np.tile([0.1, 0.9], (13, 1)), np.full((13, 2), 0.5)
    return _tabular("Boyan's Chain", boyan_chain("continuing"), policies)


def _grid_walk() -> Problem:
    mdp = grid_walk()
    return _tabular("GridWalk", mdp, grid_walk_policies(mdp))


def _four_rooms() -> Problem:
    mdp = four_rooms()
    return _tabular("FourRooms", mdp, four_rooms_policies(mdp))


def _frozen_lake() -> Problem:
    mdp = frozen_lake()
    return _tabular("FrozenLake", mdp, frozen_lake_policies(mdp), discounts=(0.95,), terminal=mdp.num_states - 1)


def _model_win() -> Problem:
    mdp = model_win_mdp()
    return _tabular("ModelWin", mdp, model_win_policies(mdp))


def _model_fail() -> Problem:
    """The log shows one observation for all states, so that no model of what it shows is right."""
    mdp = model_fail_mdp()
    seen = _tabular("ModelFail", mdp, model_fail_policies(mdp), discounts=(0.95,), terminal=3)

    def log(rows: int, overlap: float, rng: Rng) -> Transitions:
        data = seen.log(rows, overlap, rng)
        return replace(
            data,
            states=model_fail_observations(data.states),
            next_states=model_fail_observations(data.next_states),
        )

    target = np.asarray(seen.policy)[:1]
    return replace(seen, log=log, policy=TabularPolicy(target), functions=Tabular(1, 2))


def _baird() -> Problem:
    mdp = baird_star(np.random.default_rng(0).normal(size=(7, 2)))
    state_features = baird_features()

    def features(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        return (np.eye(2)[actions][:, :, None] * state_features[states][:, None]).reshape(len(states), -1)

    return _tabular("Baird's star", mdp, baird_policies(mdp), functions=LinearFeatures(features))


def _mountain_car() -> Problem:
    mdp = mountain_car()
    return _tabular("mountain car graph", mdp, mountain_car_policies(mdp))


def _taxi() -> Problem:
    mdp = taxi_world()
    problem = _tabular("Taxi", mdp, taxi_policies(mdp), sizes=(10_000, 100_000, 1_000_000), horizon=500)
    return replace(problem, large=True)


def _page_rank(pages: int = 100_000) -> Problem:
    """Sessions end when the surfer leaves for the portal; at discount 1 another begins on any page."""
    mdp = offline_page_rank(pages)
    target, behavior = page_rank_policies(mdp)

    def log(rows: int, overlap: float, rng: Rng) -> Transitions:
        policy = mixed(target, behavior, overlap)
        # A crawl: pages in equal measure, links by the behaviour.
        visits = policy / pages
        visits[pages] = 0.0
        drawn = mdp.sample(rows, visits, rng)
        left = drawn.next_states == pages
        return Transitions(
            drawn.states,
            drawn.actions,
            drawn.rewards,
            np.where(left, 0, drawn.next_states),
            initial_states=np.arange(pages),
            terminated=left,
            behavior_log_probs=np.log(policy[drawn.states, drawn.actions]),
        )

    def truth(discount: float) -> tuple[float, float]:
        visits = mdp.occupancy(target, discount)
        return float(np.sum(visits * mdp.reward) / visits[:pages].sum()), 0.0

    functions = Tabular(pages, 2)
    sizes = (500_000, 1_000_000, 2_000_000)
    return Problem("PageRank", (1.0,), sizes, log, TabularPolicy(target[:pages]), functions, truth, large=True)


TABULAR: dict[str, Callable[[], Problem]] = {
    "boyan": _boyan,
    "grid-walk": _grid_walk,
    "four-rooms": _four_rooms,
    "frozen-lake": _frozen_lake,
    "model-win": _model_win,
    "model-fail": _model_fail,
    "baird": _baird,
    "mountain-car": _mountain_car,
    "taxi": _taxi,
    "page-rank": _page_rank,
}
