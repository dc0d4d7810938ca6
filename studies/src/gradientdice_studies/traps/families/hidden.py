"""The recorded state is not the state: tables and systems of which the log shows a part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
from jaxtyping import Float, Int

from gradientdice.mdp import TabularMDP
from gradientdice.policies import TabularPolicy
from gradientdice_studies.traps.family import Case, Family, Half
from gradientdice_studies.traps.system import System, two_actions

TRAP = "the recorded state is not the state"
CONFOUNDED = "the behaviour used what is not recorded"


def families() -> list[Family]:
    """Tables, then continuous states."""
    return [
        _table("half-hidden table, 2,000 rows", "develop", _half_hidden(0, 4, 2), 80, 25, 0.9),
        _table("half-hidden table, 5,000 rows", "develop", _half_hidden(1, 5, 2), 200, 25, 0.9),
        _table("half-hidden table, 3 actions", "report", _half_hidden(7, 6, 3), 160, 25, 0.9),
        _table("two places look alike", "develop", _aliased(7, (1, 4)), 150, 30, 0.9),
        _table("places look alike, long corridor", "report", _aliased(10, (2, 5, 7)), 150, 40, 0.9),
        _table("patients, two variables unrecorded", "develop", _patients(0.6, 0.15), 300, 12, 0.95),
        _table("patients, severe cases unrecorded", "report", _patients(0.5, 0.3), 250, 16, 0.95),
        _table("confounded, probabilities logged", "develop", _confounded(0, 4, 0.5), 120, 25, 0.9, logged=True),
        _table("confounded, lasting", "develop", _confounded(2, 4, 0.95), 200, 25, 0.9),
        _table("confounded, two groups", "report", _confounded(5, 5, 0.98), 200, 20, 0.9),
        _table(
            "confounded, probabilities logged, 5 states", "report", _confounded(6, 5, 0.6), 120, 25, 0.9, logged=True
        ),
        _system("one coordinate of a rotation", "develop", rotation(0.7, 0.2), 60, 50, 0.9),
        _system("one coordinate of a slow rotation", "report", rotation(0.4, 0.15), 60, 50, 0.9),
        _system("position without velocity", "develop", mass(0.2, 0.1), 50, 40, 0.9),
        _system("position without velocity, heavier", "report", mass(0.1, 0.05), 60, 40, 0.9),
    ]


Hidden = tuple[TabularMDP, Int[np.ndarray, " S"], Float[np.ndarray, "S A"], Float[np.ndarray, "V A"]]


def _table(
    name: str,
    half: Half,
    problem: Callable[[], Hidden],
    episodes: int,
    horizon: int,
    discount: float,
    *,
    logged: bool = False,
) -> Family:
    """A table that shows `shown[state]`, with the behaviour's probabilities if they were logged."""

    def truth() -> float:
        mdp, shown, _, target = problem()
        return mdp.value(target[shown], discount)

    def log(rng: np.random.Generator) -> Case:
        mdp, shown, behavior, target = problem()
        data = mdp.rollout(behavior, episodes, horizon, rng, noise=0.3)
        probabilities = data.behavior_log_probs if logged else None
        data = replace(
            data, states=shown[data.states], next_states=shown[data.next_states], behavior_log_probs=probabilities
        )
        return Case(data, TabularPolicy(target))

    trap = CONFOUNDED if name.startswith("confounded") else TRAP
    return Family(name, trap, "table", half, discount, truth, log)


def _system(name: str, half: Half, system: System, episodes: int, horizon: int, discount: float) -> Family:
    def log(rng: np.random.Generator) -> Case:
        return Case(replace(system.log(episodes, horizon, rng), behavior_log_probs=None), system.target)

    return Family(name, TRAP, "continuous", half, discount, cache(lambda: system.value(discount)), log)


def _half_hidden(seed: int, visible: int, actions: int) -> Callable[[], Hidden]:
    """A lasting hidden half, which the actions move and on which rewards and visible moves depend."""

    @cache
    def make() -> Hidden:
        rng = np.random.default_rng(seed)
        size = 2 * visible  # state = hidden · visible + shown
        moves = rng.dirichlet(np.ones(visible), size=(2, visible, actions))
        # The first action leads to the first half, the others to the second.
        flips = rng.uniform(0.02, 0.1, size=(2, visible, actions))
        flips[0, :, 1:] += 0.2
        flips[1, :, 0] += 0.2
        transition = np.zeros((2, visible, actions, 2, visible))
        for hidden in range(2):
            transition[hidden, :, :, hidden] = (1 - flips[hidden])[..., None] * moves[hidden]
            transition[hidden, :, :, 1 - hidden] = flips[hidden][..., None] * moves[hidden]
        reward = rng.normal(size=(2, visible, actions)) + np.array([-1.0, 1.0])[:, None, None]
        mdp = TabularMDP(
            transition.reshape(size, actions, size), reward.reshape(size, actions), np.full(size, 1 / size)
        )
        target = rng.dirichlet(np.append(1.0, np.full(actions - 1, 3.0)), size=visible)
        behavior = 0.3 * target + 0.7 / actions
        return mdp, np.tile(np.arange(visible), 2), np.tile(behavior, (2, 1)), target

    return make


def _aliased(length: int, alike: tuple[int, ...]) -> Callable[[], Hidden]:
    """A corridor in which some places look the same; the last one pays and sends one back to a random place."""

    @cache
    def make() -> Hidden:
        transition, reward = np.zeros((length, 2, length)), np.zeros((length, 2))
        for place in range(length):
            for action, move in enumerate((-1, 1)):
                transition[place, action, min(max(place + move, 0), length - 1)] += 0.9
                transition[place, action, place] += 0.1
        transition[-1] = 1 / length
        reward[-1] = 1.0
        shown = np.arange(length)
        shown[list(alike)] = alike[0]
        mdp = TabularMDP(transition, reward, np.full(length, 1 / length))
        behavior, target = np.full((length, 2), 0.5), np.tile([0.2, 0.8], (length, 1))
        return mdp, shown, behavior, target

    return make


def _patients(severe: float, relapse: float) -> Callable[[], Hidden]:
    """Patients whose lasting condition and passing crisis are not recorded, treated by doctors who saw both.

    state = (condition · 2 + crisis) · 3 + vital sign; treatment helps in a crisis and harms without one.
    """

    @cache
    def make() -> Hidden:
        transition, reward, behavior = np.zeros((2, 2, 3, 2, 2, 2, 3)), np.zeros((2, 2, 3, 2)), np.zeros((2, 2, 3, 2))
        for condition in range(2):
            for crisis in range(2):
                for vital in range(3):
                    treats = 0.15 + 0.4 * crisis + 0.25 * condition + 0.1 * (vital == 0)
                    behavior[condition, crisis, vital] = 1 - treats, treats
                    for action in range(2):
                        stays = (0.4 if action else 0.85) if crisis else relapse * (1 + condition)
                        gets_better = 0.6 - severe * crisis + (0.3 * crisis - 0.15) * action - 0.1 * condition
                        gets_better = min(max(gets_better, 0.05), 0.9)
                        for then, chance in ((1, stays), (0, 1 - stays)):
                            for move, share in (
                                (1, gets_better),
                                (0, (1 - gets_better) / 2),
                                (-1, (1 - gets_better) / 2),
                            ):
                                after = min(max(vital + move, 0), 2)
                                transition[condition, crisis, vital, action, condition, then, after] += chance * share
                        reward[condition, crisis, vital, action] = vital - 1 - 0.5 * crisis - 0.2 * action
        mdp = TabularMDP(transition.reshape(12, 2, 12), reward.reshape(12, 2), np.full(12, 1 / 12))
        target = np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
        return mdp, np.tile(np.arange(3), 4), behavior.reshape(12, 2), target

    return make


def _confounded(seed: int, visible: int, lasts: float) -> Callable[[], Hidden]:
    """A hidden half that no action moves; it pays, and the behaviour chose its actions by it."""

    @cache
    def make() -> Hidden:
        rng = np.random.default_rng(seed)
        size = 2 * visible
        moves = rng.dirichlet(np.ones(visible), size=(visible, 2))
        transition = np.zeros((2, visible, 2, 2, visible))
        for hidden in range(2):
            transition[hidden, :, :, hidden] = lasts * moves
            transition[hidden, :, :, 1 - hidden] = (1 - lasts) * moves
        pays = np.array([[1.0, -1.0], [-1.0, 1.0]])  # each hidden half has an action that suits it
        reward = rng.normal(size=(1, visible, 2)) + pays[:, None, :]
        behavior = np.stack([np.tile([0.75, 0.25], (visible, 1)), np.tile([0.25, 0.75], (visible, 1))])
        mdp = TabularMDP(transition.reshape(size, 2, size), reward.reshape(size, 2), np.full(size, 1 / size))
        return mdp, np.tile(np.arange(visible), 2), behavior.reshape(size, 2), rng.dirichlet(np.ones(2), size=visible)

    return make


def rotation(angle: float, noise: float) -> System:
    """A point that goes round the origin; the action pushes it along the recorded coordinate."""
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])

    def step(states: np.ndarray, actions: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        pushed = 0.95 * states @ turn + noise * rng.normal(size=states.shape)
        pushed[:, 0] += 0.3 * (2 * actions - 1)
        return pushed, pushed[:, 0]

    return System(
        reset=lambda episodes, rng: rng.normal(size=(episodes, 2)),
        step=step,
        observe=lambda states: states[:, :1],
        behavior=two_actions(lambda states: np.full(len(states), 0.5)),
        target=two_actions(lambda states: np.full(len(states), 0.75)),
    )


def mass(friction: float, noise: float) -> System:
    """A mass on a spring; the action pushes it and the log shows its position only."""

    def step(states: np.ndarray, actions: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        position, velocity = states.T
        force = 0.5 * (2 * actions - 1) - 0.5 * position - friction * velocity
        velocity = velocity + 0.5 * force + noise * rng.normal(size=len(states))
        position = position + 0.5 * velocity
        return np.column_stack([position, velocity]), -(position**2)

    return System(
        reset=lambda episodes, rng: rng.normal(size=(episodes, 2)),
        step=step,
        observe=lambda states: states[:, :1],
        behavior=two_actions(lambda states: np.full(len(states), 0.5)),
        target=two_actions(lambda states: 1 / (1 + np.exp(2 * states[:, 0]))),
    )
