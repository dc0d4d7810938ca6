"""Families of logs: truths that are known in another way, and logs that are what they say."""

import numpy as np
import pytest

from gradientdice_studies.traps.families import families
from gradientdice_studies.traps.families.hidden import rotation


def test_the_value_of_a_rotation_is_that_of_its_linear_equations():
    """Under a constant policy E[s'] = Ms + b, and x' pays: Σ (1−γ) γᵗ E[xₜ₊₁] solves a linear system."""
    angle, discount, mean = 0.7, 0.9, np.zeros(2)
    matrix = 0.95 * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    push = np.array([0.3 * (2 * 0.75 - 1), 0.0])
    flow = np.linalg.solve(np.eye(2) - discount * matrix, matrix @ ((1 - discount) * mean) + push)
    assert abs(rotation(angle, 0.2).value(discount) - flow[0]) < 0.02


@pytest.mark.parametrize("name", list(families()))
def test_logs_fit_the_family(name):
    family = families()[name]
    case = family.log(np.random.default_rng(0))
    assert (case.data.states.dtype.kind in "iu") == (family.states == "table")
    again = family.log(np.random.default_rng(0)).data
    assert np.array_equal(case.data.states, again.states) and np.array_equal(case.data.rewards, again.rewards)


@pytest.mark.parametrize("name", [name for name in families() if "probabilities logged" in name])
def test_hidden_parts_show_in_logged_probabilities_only(name):
    data = families()[name].log(np.random.default_rng(0)).data
    assert data.behavior_log_probs is not None
    first = (data.states == data.states[0]) & (data.actions == data.actions[0])
    assert len(np.unique(data.behavior_log_probs[first])) == 2
