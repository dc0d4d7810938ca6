"""The tasks: environments of Gymnasium with a trained target and a behaviour that is clearly different.

The behaviour takes the target's action with a probability that is written below, else that of an early actor, a
random one, or the opposite. Logs are cut by a time limit of at most 200 steps, shorter than Gymnasium's own, so that a
log of 1,000 rows has at least five episodes, most have ten; a cut is not an end, and neither the truth nor any
estimator takes it for one.

Where Gymnasium pays the same at every step until the end, the average reward says nothing and a discounted sum hardly
anything. These tasks are paid otherwise: CartPole and InvertedPendulum by how upright the pole is, Acrobot by the
height of its tip.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from gradientdice.base.errors import InputError
from gradientdice.policies import DiscretePolicy, SamplingPolicy
from gradientdice_studies.control.actors import (
    Actor,
    mixed_choices,
    mixed_draws,
    uniform_choices,
    uniform_draws,
)
from gradientdice_studies.reacher import environment as reacher

DISCOUNTS = (0.9, 0.99, 1.0)
# At this angle both poles have fallen, give or take a hundredth.
FALLEN = 0.2
ControlPolicy = DiscretePolicy | SamplingPolicy


@dataclass(frozen=True, eq=False)
class Task:
    """An environment, the policy to evaluate, and the policy that logs.

    Attributes:
        name: as in `TASKS`.
        environment: Gymnasium's name.
        half: whether methods were developed on it, or it was kept for the report.
        dimension: of the state.
        limit: steps after which an episode of the log is cut.
        target: the policy to evaluate.
        behavior: the policy that logs.
        options: of `gymnasium.make`.
        changes: what is set on the environment itself, such as the length of a pole.
        pay: (next state, reward, ended) -> another reward than Gymnasium's.
        discounts: those at which it is evaluated.
    """

    name: str
    environment: str
    half: Literal["develop", "report"]
    dimension: int
    limit: int
    target: ControlPolicy
    behavior: ControlPolicy
    options: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, float] = field(default_factory=dict)
    pay: Callable[[np.ndarray, float, bool], float] | None = None
    discounts: tuple[float, ...] = DISCOUNTS

    def make(self) -> Any:
        """One environment without a time limit."""
        remedy = f"{self.environment} needs its simulator: pip install 'gradientdice[gym]'."
        try:
            import gymnasium
            from gymnasium.error import DependencyNotInstalled
        except ImportError as error:
            raise InputError(remedy) from error
        options = {"max_episode_steps": -1, "disable_env_checker": True, **self.options}
        try:
            made: Any = gymnasium.make(self.environment, **options).unwrapped
        except (ImportError, DependencyNotInstalled) as error:
            raise InputError(remedy) from error
        for name, value in self.changes.items():
            setattr(made, name, value)
        return made


def _trained(name: str, noise: float, bound: float, share: float) -> tuple[SamplingPolicy, SamplingPolicy]:
    """The trained actor with some of its noise; and its mixture with the early actor, which has all of its own."""
    target, early = Actor.load(name).noisy(noise, bound), Actor.load(f"{name}-early").noisy(1.0, bound)
    return target, mixed_draws(target, early, share)


def _random_half(name: str, noise: float, bound: float, share: float) -> tuple[SamplingPolicy, SamplingPolicy]:
    """The trained actor with some of its noise; and its mixture with uniform actions."""
    actor = Actor.load(name)
    assert actor.deviation is not None
    target = actor.noisy(noise, bound)
    return target, mixed_draws(target, uniform_draws(len(actor.deviation), bound), share)


def _choices(name: str, share: float) -> tuple[DiscretePolicy, DiscretePolicy]:
    """The trained actor, and its mixture with uniform actions."""
    target = Actor.load(name).choosing()
    return target, mixed_choices(target, uniform_choices(target.num_actions), share)


def _upright(angle: int) -> Callable[[np.ndarray, float, bool], float]:
    """1 for a pole that stands straight, less as it leans, 0 when it has fallen; the angle's place in the state."""

    def pay(state: np.ndarray, reward: float, ended: bool) -> float:
        return 0.0 if ended else 1 - min(abs(float(state[angle])) / FALLEN, 1)

    return pay


def _tip_height(state: np.ndarray, reward: float, ended: bool) -> float:
    """−cos θ₁ − cos(θ₁ + θ₂), where the state holds both angles' cosine and sine: −2 to 2, and the goal is above 1."""
    cos_first, sin_first, cos_second, sin_second = state[:4]
    return float(-cos_first - (cos_first * cos_second - sin_first * sin_second))


def _cart_pole() -> Task:
    target = mixed_choices(Actor.load("cart-pole").choosing(), uniform_choices(2), 0.8)
    behavior = mixed_choices(target, uniform_choices(2), 0.5)
    return Task("cart-pole", "CartPole-v1", "develop", 4, 100, target, behavior, pay=_upright(2))


def _acrobot() -> Task:
    target, behavior = _choices("acrobot", 0.3)
    return Task("acrobot", "Acrobot-v1", "develop", 6, 200, target, behavior, pay=_tip_height)


def _pendulum() -> Task:
    """Without discount .9: it starts anywhere, and ten steps cannot make up for that."""
    trained = Actor.load("pendulum").noisy(1.0, 2.0)
    target = mixed_draws(trained, uniform_draws(1, 2.0), 0.7)
    behavior = mixed_draws(target, SamplingPolicy(lambda states, rng: -trained.sample(states, rng)), 0.3)
    return Task("pendulum", "Pendulum-v1", "develop", 3, 100, target, behavior, discounts=(0.99, 1.0))


def _hopper() -> Task:
    target, behavior = _trained("hopper", 0.5, 1.0, 0.4)
    return Task("hopper", "Hopper-v5", "develop", 11, 100, target, behavior)


def _half_cheetah() -> Task:
    target, behavior = _random_half("half-cheetah", 0.5, 1.0, 0.5)
    return Task("half-cheetah", "HalfCheetah-v5", "develop", 17, 100, target, behavior)


def _reacher() -> Task:
    """The actor of the Reacher experiment. An episode's goal stays where it is, so that there is no one average."""
    target = reacher.noisy(reacher.Actor.load(), reacher.TARGET_NOISE)
    behavior = mixed_draws(target, uniform_draws(2, 1.0), 0.4)
    return Task("reacher", reacher.ENVIRONMENT, "develop", 10, reacher.HORIZON, target, behavior, discounts=(0.9, 0.99))


def _mountain_car() -> Task:
    """Written by hand: it pushes the way the car moves, which lifts it higher with every swing."""

    def push(states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        along = np.where(states[:, 1] < 0, -1.0, 1.0)
        return np.clip(along + 0.3 * rng.normal(size=len(states)), -1.0, 1.0)[:, None]

    target = SamplingPolicy(push)
    behavior = mixed_draws(target, uniform_draws(1, 1.0), 0.4)
    return Task("mountain-car", "MountainCarContinuous-v0", "develop", 2, 200, target, behavior)


def _discrete_mountain_car() -> Task:
    """Written by hand, with three actions; paid by the height that the car reaches, and 10 for the goal.

    Without discount 1: both policies wait in the valley most of the time, and their averages are alike.
    """

    def push(states: np.ndarray) -> np.ndarray:
        return np.where(states[:, 1:] < 0, [[0.8, 0.1, 0.1]], [[0.1, 0.1, 0.8]])

    def height(state: np.ndarray, reward: float, ended: bool) -> float:
        return 10.0 if ended else float(np.sin(3 * state[0]))

    target = DiscretePolicy(push, 3)
    behavior = mixed_choices(target, uniform_choices(3), 0.4)
    return Task(
        "discrete-mountain-car", "MountainCar-v0", "report", 2, 200, target, behavior, pay=height, discounts=(0.9, 0.99)
    )


def _long_pole() -> Task:
    """CartPole with a pole of twice the length, balanced by a rule written by hand."""

    def balance(states: np.ndarray) -> np.ndarray:
        push = 1 / (1 + np.exp(-(0.3 * states[:, 0] + 0.6 * states[:, 1] + 20 * states[:, 2] + 6 * states[:, 3])))
        return np.stack([1 - push, push], axis=1)

    target = DiscretePolicy(balance, 2)
    behavior = mixed_choices(target, uniform_choices(2), 0.4)
    # Half of the pole's length, and its product with the pole's mass, which the environment keeps apart.
    changes = {"length": 1.0, "polemass_length": 0.1}
    return Task("long-pole", "CartPole-v1", "report", 4, 100, target, behavior, changes=changes, pay=_upright(2))


def _inverted_pendulum() -> Task:
    target, behavior = _random_half("inverted-pendulum", 2.0, 3.0, 0.7)
    return Task("inverted-pendulum", "InvertedPendulum-v5", "report", 4, 100, target, behavior, pay=_upright(1))


def _lunar_lander() -> Task:
    target, behavior = _choices("lunar-lander", 0.3)
    return Task("lunar-lander", "LunarLander-v3", "report", 8, 200, target, behavior)


def _swimmer() -> Task:
    """Written by hand: each joint turns with the other's angle, so that a wave runs along the body."""

    def wave(states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        mean = np.tanh(3.0 * np.stack([-states[:, 2], states[:, 1]], axis=1))
        return np.clip(mean + 0.3 * rng.normal(size=mean.shape), -1.0, 1.0)

    target = SamplingPolicy(wave)
    behavior = mixed_draws(target, SamplingPolicy(lambda states, rng: -wave(states, rng)), 0.5)
    return Task("swimmer", "Swimmer-v5", "report", 8, 100, target, behavior)


def _inverted_double_pendulum() -> Task:
    target, behavior = _random_half("inverted-double-pendulum", 1.0, 1.0, 0.7)
    return Task("inverted-double-pendulum", "InvertedDoublePendulum-v5", "develop", 9, 100, target, behavior)


def _walker() -> Task:
    target, behavior = _trained("walker", 0.5, 1.0, 0.4)
    return Task("walker", "Walker2d-v5", "report", 17, 100, target, behavior)


def _ant() -> Task:
    """Without the contact forces, which are 78 more numbers. With less force than in training it falls less often."""
    target = Actor.load("ant").noisy(0.25, 1.0, scale=0.4)
    behavior = mixed_draws(target, uniform_draws(8, 1.0), 0.3)
    options = {"include_cfrc_ext_in_observation": False}
    return Task("ant", "Ant-v5", "report", 27, 100, target, behavior, options)


# Small ones first, those to develop on before those to report.
TASKS: dict[str, Callable[[], Task]] = {
    "cart-pole": _cart_pole,
    "pendulum": _pendulum,
    "acrobot": _acrobot,
    "reacher": _reacher,
    "hopper": _hopper,
    "half-cheetah": _half_cheetah,
    "mountain-car": _mountain_car,
    "inverted-double-pendulum": _inverted_double_pendulum,
    "discrete-mountain-car": _discrete_mountain_car,
    "long-pole": _long_pole,
    "inverted-pendulum": _inverted_pendulum,
    "lunar-lander": _lunar_lander,
    "swimmer": _swimmer,
    "walker": _walker,
    "ant": _ant,
}
