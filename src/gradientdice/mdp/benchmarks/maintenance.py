"""A machine that wears: run it, service it, or replace it. The bundled log's problem, with its value known exactly."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from gradientdice.base.errors import require_count, require_number
from gradientdice.mdp.finite import TabularMDP

CONDITIONS, DEMANDS = 10, 2
RUN, SERVICE, REPLACE = 0, 1, 2


def machine_maintenance() -> TabularMDP:
    """Twenty states, condition 0 (new) to 9 (broken) × demand (low, high), and three actions: run, service, replace.

    state = condition · 2 + demand. A run earns 4 or 8, less what a worn machine spoils, and wears it by 0 to 2 steps,
    faster under high demand; a broken machine stands and costs. A service costs 3 and mostly restores up to three
    steps; a replacement costs 15. Demand stays as it is with probability 0.8.
    """
    states = CONDITIONS * DEMANDS
    transition, reward = np.zeros((states, 3, states)), np.zeros((states, 3))
    for condition in range(CONDITIONS):
        for demand in range(DEMANDS):
            state, broken = condition * DEMANDS + demand, condition == CONDITIONS - 1
            wear = (0.65, 0.25, 0.1) if demand == 0 else (0.45, 0.35, 0.2)
            outcomes = {
                RUN: [(min(condition + step, CONDITIONS - 1), share) for step, share in enumerate(wear)],
                SERVICE: [(max(condition - 3, 0), 0.8), (condition, 0.2)],
                REPLACE: [(0, 1.0)],
            }
            for action, after in outcomes.items():
                for next_condition, share in after:
                    for next_demand in range(DEMANDS):
                        stays = 0.8 if next_demand == demand else 0.2
                        transition[state, action, next_condition * DEMANDS + next_demand] += share * stays
            reward[state, RUN] = -2.0 if broken else 4.0 * (1 + demand) - 0.08 * condition**2
            reward[state, SERVICE], reward[state, REPLACE] = -3.0, -15.0
    initial = np.zeros(states)
    initial[:DEMANDS] = 0.5
    return TabularMDP(transition, reward, initial)


def threshold_policy(service_from: int, replace_from: int, slack: float) -> Float[np.ndarray, "20 3"]:
    """Service from one condition on, replace from another on; with probability `slack` any action at all."""
    service_from = require_count("service_from", service_from, low=0)
    replace_from = require_count("replace_from", replace_from, low=0)
    slack = require_number("slack", slack, low=0, high=1)
    policy = np.full((CONDITIONS * DEMANDS, 3), slack / 3)
    for state in range(len(policy)):
        condition = state // DEMANDS
        choice = REPLACE if condition >= replace_from else SERVICE if condition >= service_from else RUN
        policy[state, choice] += 1 - slack
    return policy
