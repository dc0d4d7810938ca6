"""Pendulum swing-up, CartPole and MountainCar, many episodes at a time, with a behaviour and a target policy each.

The dynamics are Gymnasium's (Pendulum-v1, CartPole-v1, MountainCar-v0), written for batches in NumPy, so that a log of
10⁵ transitions takes a second and a Monte Carlo truth of 10⁵ episodes a minute.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gradientdice.log.transitions import Transitions
from gradientdice.policies import DiscretePolicy, SamplingPolicy

State = np.ndarray
Rng = np.random.Generator


@dataclass(frozen=True)
class Environment:
    """A control problem for batches of episodes.

    Attributes:
        name: its name.
        reset: (episodes, rng) -> states.
        step: (states, actions) -> (next states, rewards, terminated).
        observe: states -> observations.
        horizon: steps after which logging truncates an episode.
        behavior: the logging policy, on observations.
        target: the policy to evaluate, on observations.
    """

    name: str
    reset: Callable[[int, Rng], State]
    step: Callable[[State, np.ndarray], tuple[State, np.ndarray, np.ndarray]]
    observe: Callable[[State], np.ndarray]
    horizon: int
    behavior: DiscretePolicy | SamplingPolicy
    target: DiscretePolicy | SamplingPolicy

    def log(self, transitions: int, rng: Rng) -> Transitions:
        """Episodes under the behaviour policy until there are this many transitions; the last may be cut short."""
        parts, total, episode = [], 0, 0
        while total < transitions:
            batch = max(1, (transitions - total) // self.horizon + 1)
            parts.append(self._rollout(batch, episode, rng))
            total, episode = total + len(parts[-1]["rewards"]), episode + batch
        columns = {name: np.concatenate([part[name] for part in parts])[:transitions] for name in parts[0]}
        return Transitions(**columns)

    def value(
        self, policy: DiscretePolicy | SamplingPolicy, discount: float, episodes: int, rng: Rng
    ) -> tuple[float, float]:
        """(1−γ) E[Σ γᵗ r] by Monte Carlo without a time limit, and its standard error."""
        state, returns = self.reset(episodes, rng), np.zeros(episodes)
        alive, factor = np.ones(episodes, dtype=bool), 1 - discount
        for _ in range(math.ceil(math.log(1e-5) / math.log(discount))):
            state, reward, ended = self.step(state, _act(policy, self.observe(state), rng))
            returns += factor * alive * reward
            alive &= ~ended
            factor *= discount
        return float(returns.mean()), float(returns.std(ddof=1) / math.sqrt(episodes))

    def _rollout(self, episodes: int, first: int, rng: Rng) -> dict[str, np.ndarray]:
        state, active = self.reset(episodes, rng), np.arange(episodes)
        records = []
        for step in range(self.horizon):
            observation = self.observe(state)
            action = _act(self.behavior, observation, rng)
            state, reward, ended = self.step(state, action)
            truncated = np.full(len(active), step == self.horizon - 1) & ~ended
            records.append(
                (
                    active + first,
                    np.full(len(active), step),
                    observation,
                    action,
                    reward,
                    self.observe(state),
                    ended,
                    truncated,
                )
            )
            active, state = active[~ended], state[~ended]
            if not len(active):
                break
        columns = [np.concatenate(column) for column in zip(*records, strict=True)]
        order = np.lexsort((columns[1], columns[0]))
        names = ("episodes", "states", "actions", "rewards", "next_states", "terminated", "truncated")
        return {name: column[order] for name, column in zip(names, [columns[0], *columns[2:]], strict=True)}


def _act(policy: DiscretePolicy | SamplingPolicy, observation: np.ndarray, rng: Rng) -> np.ndarray:
    if isinstance(policy, SamplingPolicy):
        return policy.sample(observation, rng)
    cumulative = np.cumsum(policy.probabilities_at(observation), axis=1)
    return np.minimum((cumulative < rng.random(len(cumulative))[:, None]).sum(axis=1), policy.num_actions - 1)


def pendulum() -> Environment:
    """Pendulum-v1: swing up by energy, then hold; the behaviour with noise 1, the target with noise 0.2."""

    def reset(episodes: int, rng: Rng) -> State:
        return np.column_stack([rng.uniform(-np.pi, np.pi, episodes), rng.uniform(-1, 1, episodes)])

    def step(state: State, action: np.ndarray) -> tuple[State, np.ndarray, np.ndarray]:
        angle, speed = state.T
        torque = np.clip(action[:, 0], -2, 2)
        centred = (angle + np.pi) % (2 * np.pi) - np.pi
        reward = -(centred**2 + 0.1 * speed**2 + 0.001 * torque**2)
        speed = np.clip(speed + (15 * np.sin(angle) + 3 * torque) * 0.05, -8, 8)
        return np.column_stack([angle + speed * 0.05, speed]), reward, np.zeros(len(state), dtype=bool)

    def observe(state: State) -> np.ndarray:
        return np.column_stack([np.cos(state[:, 0]), np.sin(state[:, 0]), state[:, 1]])

    def controller(observation: np.ndarray) -> np.ndarray:
        cosine, sine, speed = observation.T
        missing = 15 * (1 - cosine) - 0.5 * speed**2
        swing = np.sign(speed) * np.clip(missing, -2, 2)
        hold = -(10 * np.arctan2(sine, cosine) + 2 * speed)
        return np.clip(np.where(cosine > 0.85, hold, swing), -2, 2)

    def noisy(deviation: float) -> SamplingPolicy:
        def sample(observation: np.ndarray, rng: Rng) -> np.ndarray:
            mean = controller(observation)
            return np.clip(mean + deviation * rng.normal(size=len(mean)), -2, 2)[:, None]

        return SamplingPolicy(sample)

    return Environment("pendulum", reset, step, observe, 200, noisy(1.0), noisy(0.2))


def cart_pole() -> Environment:
    """CartPole-v1: both policies push towards the side to which the pole leans, the target much more reliably."""

    def reset(episodes: int, rng: Rng) -> State:
        return rng.uniform(-0.05, 0.05, size=(episodes, 4))

    def step(state: State, action: np.ndarray) -> tuple[State, np.ndarray, np.ndarray]:
        x, speed, angle, spin = state.T
        force = np.where(action == 1, 10.0, -10.0)
        cosine, sine = np.cos(angle), np.sin(angle)
        push = (force + 0.05 * spin**2 * sine) / 1.1
        turn = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
        pull = push - 0.05 * turn * cosine / 1.1
        moved = np.column_stack([x + 0.02 * speed, speed + 0.02 * pull, angle + 0.02 * spin, spin + 0.02 * turn])
        ended = (np.abs(moved[:, 0]) > 2.4) | (np.abs(moved[:, 2]) > 12 * 2 * np.pi / 360)
        return moved, np.ones(len(state)), ended

    def leaning(sharpness: float) -> DiscretePolicy:
        def probabilities(observation: np.ndarray) -> np.ndarray:
            lean = observation @ np.array([0.3, 0.6, 4.0, 1.5])
            right = 0.05 + 0.9 / (1 + np.exp(-np.clip(sharpness * lean, -50, 50)))
            return np.column_stack([1 - right, right])

        return DiscretePolicy(probabilities, 2)

    return Environment("cartpole", reset, step, lambda state: state, 200, leaning(0.6), leaning(4.0))


def mountain_car() -> Environment:
    """MountainCar-v0: push in the direction of motion, often (the target) or less often (the behaviour).

    Episodes start anywhere: from Gymnasium's narrow start no policy arrives soon enough to matter at discount 0.9.
    """

    def reset(episodes: int, rng: Rng) -> State:
        return np.column_stack([rng.uniform(-1.2, 0.5, episodes), rng.uniform(-0.07, 0.07, episodes)])

    def step(state: State, action: np.ndarray) -> tuple[State, np.ndarray, np.ndarray]:
        position, speed = state.T
        speed = np.clip(speed + (action - 1) * 0.001 - 0.0025 * np.cos(3 * position), -0.07, 0.07)
        position = np.clip(position + speed, -1.2, 0.6)
        speed = np.where((position == -1.2) & (speed < 0), 0.0, speed)
        return np.column_stack([position, speed]), -np.ones(len(state)), position >= 0.5

    def pumping(slack: float) -> DiscretePolicy:
        def probabilities(observation: np.ndarray) -> np.ndarray:
            along = np.where(observation[:, 1] >= 0, 2, 0)
            return slack / 3 + (1 - slack) * np.eye(3)[along]

        return DiscretePolicy(probabilities, 3)

    return Environment("mountain-car", reset, step, lambda state: state, 200, pumping(0.6), pumping(0.15))


ENVIRONMENTS: dict[str, Callable[[], Environment]] = {
    "pendulum": pendulum,
    "cartpole": cart_pole,
    "mountain-car": mountain_car,
}
