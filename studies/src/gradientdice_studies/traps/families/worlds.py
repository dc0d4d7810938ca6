"""Worlds that a log shows badly: they change, keep time of their own, pay late, or are seen through coarse glasses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gradientdice.dice.stochastic.projected import ProjectedPrimalDual
from gradientdice.estimators.saddle.gradient_dice import GradientDICE
from gradientdice.functions.linear import LinearFeatures
from gradientdice.log.transitions import Transitions
from gradientdice.policies import TabularPolicy
from gradientdice_studies.coverage.problems import problems
from gradientdice_studies.coverage.run import merged_features
from gradientdice_studies.traps.drift import Drift
from gradientdice_studies.traps.families.simulated import Table, drawn, normal
from gradientdice_studies.traps.family import Case, Family, Half
from gradientdice_studies.verdicts.run import logged_with

Rng = np.random.Generator


def families() -> list[Family]:
    """Two of each, one for each half."""
    small, large = Table(6, 2, seed=41), Table(10, 3, seed=42)
    return [
        _changed("the world changed half way, 6×2", "develop", small, 0.3),
        _changed("the world changed half way, 10×3", "report", large, 0.4),
        _changed_drift("the world changed half way, drift", "develop", Drift()),
        _changed_drift("the world changed half way, slow drift", "report", Drift(carry=0.95, right=0.7)),
        _hours("an hour that is not recorded, 6×2", "develop", small, 8),
        _hours("an hour that is not recorded, 10×3", "report", large, 12),
        _pays_late("pays three steps late, 6×2", "develop", small, 3),
        _pays_late("pays two steps late, 10×3", "report", large, 2),
        _coarse("a drift seen in 5 bins", "develop", Drift(), 5),
        _coarse("a slow drift seen in 6 bins", "report", Drift(carry=0.95), 6),
        _merged("features that merge states, 8×3", "develop", "random 8×3"),
        _merged("features that merge states, grid 4×4", "report", "ending, grid 4×4"),
        _far("far from the behaviour, 8×3", "develop", "random 8×3", 0.02, 0.97),
        _far("far from the behaviour, maintenance", "report", "maintenance", 0.02, 0.97),
        _early("a learner stopped early, 5×2", "develop", "random 5×2"),
        _early("a learner stopped early, 6×2", "report", "ending, random 6×2"),
    ]


def _changed(name: str, half: Half, table: Table, less: float) -> Family:
    """Rewards fell after half of the episodes; the question is about the world as it is now."""

    def log(rng: Rng) -> Case:
        data = table.episodes(100, 30, normal(0.3), rng)
        assert data.episodes is not None
        return Case(replace(data, rewards=data.rewards - less * (data.episodes >= 50)), table.target)

    return Family(name, "the world changed", "table", half, 0.9, lambda: table.value(0.9) - less, log)


def _changed_drift(name: str, half: Half, chain: Drift) -> Family:
    def log(rng: Rng) -> Case:
        data = chain.episodes(chain.groups(80, chain.shares, rng), 25, rng)
        assert data.episodes is not None
        return Case(replace(data, rewards=data.rewards - 0.5 * (data.episodes >= 40)), chain.policy)

    return Family(name, "the world changed", "continuous", half, 0.9, lambda: chain.truth(0.9) - 0.5, log)


def _hours(name: str, half: Half, table: Table, day: int) -> Family:
    """An action pays by the hour, and the behaviour keeps to hours that are not recorded."""
    swing = 1.0

    def log(rng: Rng) -> Case:
        mdp, episodes, steps = table.mdp, 100, 30
        state, hour = rng.choice(table.states, size=episodes, p=mdp.initial), rng.integers(day, size=episodes)
        columns = []
        for _ in range(steps):
            late = hour >= day // 2
            # In the second half of the day the last action pays less, and the behaviour takes it less often.
            last = rng.random(episodes) < np.where(late, 0.2, 0.8)
            action = np.where(last, table.actions - 1, rng.integers(table.actions - 1, size=episodes))
            reward = mdp.reward[state, action] + swing * last * np.where(late, -1, 1) + 0.3 * rng.normal(size=episodes)
            following = drawn(mdp.transition[state, action], rng)
            columns.append((state, action, reward, following))
            state, hour = following, (hour + 1) % day
        states, actions, rewards, next_states = (
            np.stack(column, axis=1).ravel() for column in zip(*columns, strict=True)
        )
        data = Transitions(
            states,
            actions,
            rewards,
            next_states,
            episodes=np.repeat(np.arange(episodes), steps),
            truncated=np.tile(np.arange(steps) == steps - 1, episodes),
        )
        return Case(data, table.target)

    # For a policy that does not look at the hour the swings of a uniform start cancel.
    return Family(name, "an hour that is not recorded", "table", half, 0.9, lambda: table.value(0.9), log)


def _pays_late(name: str, half: Half, table: Table, lag: int) -> Family:
    """An action's pay comes some steps later, with another state and action."""

    def log(rng: Rng) -> Case:
        data = table.episodes(100, 30, normal(0.3), rng)
        pay = 2.0 * (data.actions == 0).reshape(100, 30)
        late = np.zeros_like(pay)
        late[:, lag:] = pay[:, :-lag]
        return Case(replace(data, rewards=data.rewards + late.ravel()), table.target)

    def truth() -> float:
        mdp, discount = table.mdp, 0.9
        reward = np.zeros((table.states, table.actions))
        reward[:, 0] = 2.0
        bonus = type(mdp)(mdp.transition, reward, mdp.initial).value(table.target.probabilities, discount)
        return table.value(discount) + discount**lag * bonus

    return Family(name, "pays steps later", "table", half, 0.9, truth, log)


def _coarse(name: str, half: Half, chain: Drift, bins: int) -> Family:
    """A continuous state that the log shows as the number of its bin."""
    edges = np.linspace(-2, 3, bins - 1)

    def log(rng: Rng) -> Case:
        data = chain.episodes(chain.groups(80, chain.shares, rng), 25, rng)
        shown, following = (np.digitize(column[:, 0], edges) for column in (data.states, data.next_states))
        policy = TabularPolicy(np.tile([1 - chain.right, chain.right], (bins, 1)))
        return Case(Transitions(shown, data.actions, data.rewards, following, episodes=data.episodes), policy)

    return Family(name, "states in bins", "table", half, 0.9, lambda: chain.truth(0.9), log)


def _merged(name: str, half: Half, problem_name: str) -> Family:
    """A user's features that cannot tell neighbouring states apart, far from the behaviour."""
    problem = logged_with(problems()[problem_name](), 0.2)
    states, actions = problem.terminal, problem.mdp.num_actions
    policy = TabularPolicy(problem.target[:states])
    functions = LinearFeatures(merged_features(states, actions))

    def log(rng: Rng) -> Case:
        return Case(problem.trajectories(5_000, rng), policy, {"functions": functions})

    return Family(name, "features that merge states", "table", half, 0.97, lambda: problem.truth(0.97), log)


def _far(name: str, half: Half, problem_name: str, share: float, discount: float) -> Family:
    """A policy whose actions the behaviour hardly takes."""
    problem = logged_with(problems()[problem_name](), share)
    policy = TabularPolicy(problem.target[: problem.terminal])

    def log(rng: Rng) -> Case:
        return Case(problem.trajectories(2_000, rng), policy)

    return Family(name, "far from the behaviour", "table", half, discount, lambda: problem.truth(discount), log)


def _early(name: str, half: Half, problem_name: str) -> Family:
    """The paper's Algorithm 1 with too few steps."""
    problem = problems()[problem_name]()
    policy = TabularPolicy(problem.target[: problem.terminal])
    options = {"discount": None, "estimator": GradientDICE(0.9), "solver": ProjectedPrimalDual(1_000)}

    def log(rng: Rng) -> Case:
        return Case(problem.trajectories(1_000, rng), policy, options)

    return Family(name, "a learner stopped early", "table", half, 0.9, lambda: problem.truth(0.9), log)
