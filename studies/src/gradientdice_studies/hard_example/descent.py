"""The objectives on one state and two actions: their gradients, their curvature, and descent-ascent on them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gradientdice.estimators.saddle.gen_dice import GenDICE
from gradientdice.estimators.saddle.gradient_dice import GradientDICE
from gradientdice.mdp import single_state
from gradientdice_studies.hard_example.population import population_objective

UNIFORM = np.array([[0.5, 0.5]])
WRONG_POINT = (jnp.zeros(2), jnp.zeros(2), jnp.asarray(-1.0))
RATE, STEPS = 0.05, 4000

Learner = GenDICE | GradientDICE
Point = tuple[Any, Any, Any]


def objective(estimator: Learner) -> Any:
    """J over (raw ratio (2,), critic (2,), norm multiplier)."""
    return population_objective(estimator, single_state(), UNIFORM, UNIFORM)


def gradient_at(estimator: Learner, point: Point) -> np.ndarray:
    """All five partial derivatives."""
    parts = jax.grad(objective(estimator), argnums=(0, 1, 2))(*point)
    return np.concatenate([np.atleast_1d(part) for part in parts])


def ratio_curvature_at(estimator: Learner, point: Point) -> np.ndarray:
    """The eigenvalues of the Hessian in the minimiser's two variables."""
    return np.linalg.eigvalsh(np.asarray(jax.hessian(objective(estimator))(*point)))


def descend(estimator: Learner, start: Point, steps: int = STEPS, rate: float = RATE) -> np.ndarray:
    """Deterministic simultaneous descent-ascent; τ after each step, (steps, 2)."""
    return np.asarray(_descent(estimator, steps, rate)(start))


@cache
def _descent(estimator: Learner, steps: int, rate: float) -> Callable[[Point], Any]:
    """The compiled program, which serves every start."""
    gradient = jax.grad(objective(estimator), argnums=(0, 1, 2))

    def step(point: Point, _: None) -> tuple[Point, Any]:
        ratio_grad, critic_grad, norm_grad = gradient(*point)
        ratio, critic, norm = point
        point = (ratio - rate * ratio_grad, critic + rate * critic_grad, norm + rate * norm_grad)
        return point, estimator.ratio(point[0])

    return jax.jit(lambda start: lax.scan(step, start, None, length=steps)[1])
