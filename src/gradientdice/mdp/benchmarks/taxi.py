"""A taxi that never stops, on 5 × 5 squares whose corners passengers come to and leave: 2,000 states."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.sparse import csr_array, identity, kron

from gradientdice.mdp.finite import SparseMDP
from gradientdice.mdp.planning import mixed_with_uniform, optimal_q, softmax_policy

SIDE, PATTERNS, STATUSES, ACTIONS = 5, 16, 5, 6
EMPTY, PICK_UP, DROP_OFF = 4, 4, 5
MOVES = ((1, 0), (0, 1), (-1, 0), (0, -1))
CORNERS = np.array([0, SIDE - 1, SIDE * (SIDE - 1), SIDE * SIDE - 1])
ARRIVAL, DEPARTURE = (0.3, 0.05, 0.1, 0.2), (0.05, 0.1, 0.1, 0.05)


def taxi_world() -> SparseMDP:
    """Taxi without an end: 25 squares × 2⁴ patterns of waiting passengers × (4 destinations or empty), six actions.

    state = (square · 16 + pattern) · 5 + status, where square = row · 5 + column, bit i of the pattern says that
    somebody waits at corner i, and status is the passenger's destination corner or 4. Actions 0 to 3 drive down,
    right, up and left; 4 picks up and 5 drops off. An empty taxi picks up a passenger who waits where it is, bound for
    one of the three other corners at random; it drops a passenger off only at the destination. Either success pays 20,
    all other steps −1. After each step, passengers come to the free corners with probabilities 0.3, 0.05, 0.1 and 0.2
    and leave the others with 0.05, 0.1, 0.1 and 0.05. The first square and pattern are uniform and the taxi is empty.

    The states, the actions and the payments are the paper's, the probabilities those of its simulator. The paper does
    not say what a wrong attempt does; here it does nothing, so that only a delivery makes the next pick-up possible.

    References:
        Liu, Li, Tang and Zhou 2018, Breaking the curse of horizon; the original is Dietterich's (2000).
    """
    states = SIDE * SIDE * PATTERNS * STATUSES
    square, pattern, status = np.unravel_index(np.arange(states), (SIDE * SIDE, PATTERNS, STATUSES))
    reward = np.full((states, ACTIONS), -1.0)
    pair, after, share = [], [], []

    def lead(where: np.ndarray, action: int, to: tuple[np.ndarray, np.ndarray, np.ndarray], probability: float) -> None:
        pair.append(np.flatnonzero(where) * ACTIONS + action)
        after.append(np.ravel_multi_index(tuple(part[where] for part in to), (SIDE * SIDE, PATTERNS, STATUSES)))
        share.append(np.full(np.count_nonzero(where), probability))

    everywhere = np.ones(states, dtype=bool)
    row, column = np.divmod(square, SIDE)
    for action, (down, right) in enumerate(MOVES):
        arrived = np.clip(row + down, 0, SIDE - 1) * SIDE + np.clip(column + right, 0, SIDE - 1)
        lead(everywhere, action, (arrived, pattern, status), 1.0)
    picked = dropped = ~everywhere
    for number, corner in enumerate(CORNERS):
        waits = (square == corner) & (status == EMPTY) & (pattern >> number & 1 == 1)
        for destination in set(range(4)) - {number}:
            lead(waits, PICK_UP, (square, pattern - (1 << number), np.full(states, destination)), 1 / 3)
        arrives = (square == corner) & (status == number)
        lead(arrives, DROP_OFF, (square, pattern, np.full(states, EMPTY)), 1.0)
        picked, dropped = picked | waits, dropped | arrives
    for action, success in ((PICK_UP, picked), (DROP_OFF, dropped)):
        lead(~success, action, (square, pattern, status), 1.0)
        reward[success, action] = 20
    places = (np.concatenate(pair), np.concatenate(after))
    drive = csr_array((np.concatenate(share), places), shape=(states * ACTIONS, states))
    passengers = csr_array(kron(identity(SIDE * SIDE), kron(_passengers(), identity(STATUSES))))
    initial = np.where(status == EMPTY, 1 / (SIDE * SIDE * PATTERNS), 0.0)
    return SparseMDP(csr_array(drive @ passengers), reward, initial)


def taxi_policies(mdp: SparseMDP) -> tuple[Float[np.ndarray, "2000 6"], Float[np.ndarray, "2000 6"]]:
    """The target is the optimum at discount 0.95, softened; the behaviour takes a random action two times in five."""
    target = softmax_policy(optimal_q(mdp, 0.95), 1.0)
    return target, mixed_with_uniform(target, 0.6)


def _passengers() -> Float[np.ndarray, "16 16"]:
    """Transitions of the pattern of waiting passengers in a step; each corner goes its own way."""
    change = np.ones((1, 1))
    for arrival, departure in zip(ARRIVAL, DEPARTURE, strict=True):
        # The first corner is the lowest bit, so each further one goes in front.
        change = np.kron(np.array([[1 - arrival, arrival], [departure, 1 - departure]]), change)
    return change
