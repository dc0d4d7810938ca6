"""Mountain Car as a graph: bins of position and velocity, joined as often as the true dynamics join them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from gradientdice.base.arrays import require_memory
from gradientdice.base.errors import require_count
from gradientdice.mdp.finite import TabularMDP, require_mdp

LEFT_END, RIGHT_END, GOAL = -1.2, 0.6, 0.5
TOP_SPEED = 0.07
ACTIONS = 3


def mountain_car(positions: int = 17, velocities: int = 10, repeats: int = 5, points: int = 6) -> TabularMDP:
    """A car too weak for its hill, in positions · velocities states; actions 0 back, 1 coast, 2 forward.

    state = position bin · velocities + velocity bin, over [−1.2, 0.5) × [−0.07, 0.07]. p(s'|s,a) is the share of
    points² evenly spaced points of bin s from which the action, held for `repeats` steps of the dynamics, ends in bin
    s'; no draws are made. A car that reaches 0.5 is paid 1 and is put back into the valley at rest, where it also
    begins: at bins with positions in [−0.6, −0.4] and velocities nearest to 0.

    Off-policy experiments have used several small graphs called Mountain Car without their numbers in print. This one
    is built from the car's equations and is not a copy of any of them; its truth is that of the graph, not of the car.

    References:
        Sutton and Barto 2018, example 10.1, for the dynamics; Hallak and Mannor 2017, Consistent on-line off-policy
        evaluation, and Gelada and Bellemare 2019, Off-policy deep reinforcement learning by bootstrapping the
        covariate shift, for the use.
    """
    counts = {"positions": positions, "velocities": velocities, "repeats": repeats, "points": points}
    # Within a thousand steps the car is at rest or has arrived; a thousand bins a side are a table for nobody.
    positions, velocities, repeats, points = (require_count(name, count, high=1000) for name, count in counts.items())
    states = positions * velocities
    require_memory("The transitions", ACTIONS, states, states, remedy="Take fewer positions or velocities.")
    require_memory("The points", states, points, points, remedy="Take fewer points.")
    start = _start(positions, velocities)
    inside = (np.arange(points) + 0.5) / points
    bins = np.arange(states)
    place = LEFT_END + (GOAL - LEFT_END) * ((bins // velocities)[:, None, None] + inside[:, None]) / positions
    speed = TOP_SPEED * (2 * ((bins % velocities)[:, None, None] + inside) / velocities - 1)
    place, speed = np.broadcast_arrays(place, speed)
    transition, reward = np.zeros((states, ACTIONS, states)), np.zeros((states, ACTIONS))
    for action in range(ACTIONS):
        end_place, end_speed, arrived = _drive(place, speed, action, repeats)
        after = _bin(end_place, end_speed, positions, velocities)
        links = (bins[:, None, None] * states + after)[~arrived]
        reward[:, action] = arrived.mean(axis=(1, 2))
        transition[:, action] = np.bincount(links, minlength=states**2).reshape(states, states) / points**2
        transition[:, action] += reward[:, action, None] * start
    return TabularMDP(transition, reward, start)


def mountain_car_policies(mdp: TabularMDP, velocities: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """The target pushes along with the car's motion 8 times in 10, the behaviour 5 times in 10; else any action.

    Args:
        mdp: the graph.
        velocities: the number of velocity bins that it was built with.
    """
    require_mdp(mdp)
    velocities = require_count("velocities", velocities)
    speed = 2 * (np.arange(mdp.num_states) % velocities) + 1 - velocities
    along = np.eye(ACTIONS)[np.where(speed >= 0, 2, 0)]
    return 0.8 * along + 0.2 / ACTIONS, 0.5 * along + 0.5 / ACTIONS


def _drive(
    place: np.ndarray, speed: np.ndarray, action: int, repeats: int
) -> tuple[Float[np.ndarray, "S p p"], Float[np.ndarray, "S p p"], np.ndarray]:
    """Where the car is after some steps, how fast, and whether it reached the goal on the way."""
    arrived = np.zeros(place.shape, dtype=bool)
    for _ in range(repeats):
        speed = np.clip(speed + 0.001 * (action - 1) - 0.0025 * np.cos(3 * place), -TOP_SPEED, TOP_SPEED)
        place = np.clip(place + speed, LEFT_END, RIGHT_END)
        # The wall on the left stops the car.
        speed = np.where(place == LEFT_END, np.maximum(speed, 0), speed)
        arrived |= place >= GOAL
    return place, speed, arrived


def _bin(place: np.ndarray, speed: np.ndarray, positions: int, velocities: int) -> np.ndarray:
    column = np.floor((place - LEFT_END) / (GOAL - LEFT_END) * positions).astype(np.int64)
    row = np.floor((speed / TOP_SPEED + 1) / 2 * velocities).astype(np.int64)
    return np.clip(column, 0, positions - 1) * velocities + np.clip(row, 0, velocities - 1)


def _start(positions: int, velocities: int) -> Float[np.ndarray, " S"]:
    """The valley: an even grid of positions in [−0.6, −0.4], at speeds to either side of 0."""
    place = np.repeat(-0.6 + 0.2 * (np.arange(100) + 0.5) / 100, 2)
    speed = np.tile([-1e-9, 1e-9], 100)
    return np.bincount(_bin(place, speed, positions, velocities), minlength=positions * velocities) / len(place)
