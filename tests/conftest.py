"""Shared fixtures. Importing `shapes` before the package makes the package check the shapes of its arrays."""

import hypothesis
import numpy as np
import pytest

import compiled  # before whatever imports JAX
import shapes  # before whatever imports the package
from problems import TARGET, UNIFORM, random_problem

# The same few examples in every run: a failure can be repeated, and the tests stay quick.
hypothesis.settings.register_profile("fixed", derandomize=True, database=None, deadline=None, max_examples=25)
hypothesis.settings.load_profile("fixed")

__all__ = ["compiled", "TARGET", "UNIFORM", "random_problem"]


def pytest_runtest_setup() -> None:
    shapes.begin_test()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20200713)


@pytest.fixture(params=range(4))
def problem(request):
    """A random ergodic MDP, a target policy and a data distribution that covers it."""
    return random_problem(request.param)
