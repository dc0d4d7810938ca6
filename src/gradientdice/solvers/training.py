"""Stochastic primal-dual learning of any estimator with linear functions, as one `lax.scan`.

A whole grid of runs advances together. Parameters have shape (K, runs): hyper-parameters are arrays over the
runs, and the runs of one seed see the same transitions, so that a draw is one contiguous slice for all of them
and comparisons between hyper-parameters are paired. Seeds are a `vmap` around it.

Every update uses the gradients at the same point: descent for the player who minimises, ascent for the other.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from gradientdice.estimators import Estimator
from gradientdice.estimators.terms import Terms
from gradientdice.solvers.initial import Init
from gradientdice.solvers.recorders import Recorder
from gradientdice.solvers.schedules import Schedule
from gradientdice.solvers.sources import Batch, Source

# A parameter beyond this has left every problem's range; squares of it still fit in float32.
LARGEST = 1e15

ESTIMATOR_LEAVES = ("discount", "norm_penalty", "ridge")


@dataclass(frozen=True)
class Plan:
    """All of a training run that shapes its compiled program; the numbers in `estimator` and `schedule` do not.

    Attributes:
        estimator: a template, whose discount, norm_penalty and ridge each run replaces by its own.
        schedule: a template, whose numbers each run replaces by its own.
        steps: the number of updates.
        batch_size: transitions an update.
        record_every: updates between two points of the learning curve.
        init: where the weights start.
        with_ridge: whether any run has a ridge: shrinking the weights touches all of them at every step.
        projected: whether iterates are kept in balls and averaged (Algorithm 1).
    """

    estimator: Estimator
    schedule: Schedule
    steps: int
    batch_size: int
    record_every: int
    init: Init
    with_ridge: bool
    projected: bool = False


class State(NamedTuple):
    """The iterates of all runs."""

    ratio: Any  # (K, runs)
    critic: Any  # (K, runs)
    norm_multiplier: Any  # (runs,)


class Outcome(NamedTuple):
    """What a program returns: the last finite iterates, their curve, and the step of divergence (−1: none)."""

    state: State
    curve: Any  # (records, runs)
    diverged_at: Any  # (runs,)


def train(plan: Plan, source: Source, recorder: Recorder, hyper: dict[str, Any], seed: Any) -> Outcome:
    """Runs one seed of all hyper-parameters.

    Args:
        plan: the static part.
        source: where transitions come from.
        recorder: what the curve shows.
        hyper: (runs,) arrays: the estimator's numbers, the schedule's, and the radii and step units of a projected run.
        seed: a whole number.
    """
    estimator = bind(plan.estimator, {name: hyper[name] for name in ESTIMATOR_LEAVES if name in hyper})
    schedule = bind(plan.schedule, {name: hyper[name] for name in vars(plan.schedule)})
    runs = hyper["discount"].shape
    init_key, draw_key = _keys(seed)
    weights = plan.init.draw(init_key, source.num_features)
    ratio, critic = (jnp.broadcast_to(w[:, None], (source.num_features, *runs)) for w in weights)
    state = State(ratio, critic, jnp.zeros(runs))

    def step(carry: tuple[State, Any], inputs: tuple[Any, Any]) -> tuple[tuple[State, Any], None]:
        state, average = carry
        time, drawn = inputs
        rate = schedule.at(time)
        state = _update(estimator, plan, hyper, source.batch(drawn), state, rate)
        if plan.projected:
            state = _project(state, hyper)
            average = _include(average, state, rate)
        return (state, average), None

    def block(carry: tuple[Any, ...], start: Any, length: int) -> tuple[tuple[Any, ...], Any]:
        state, average, finite, diverged_at = carry
        drawn = source.draw(jax.random.fold_in(draw_key, start), length * plan.batch_size)
        times = start + jnp.arange(length)
        (state, average), _ = lax.scan(step, (state, average), (times, drawn.reshape(length, plan.batch_size, 3)))
        current = average[0] if plan.projected else state
        healthy = _healthy(current) & (diverged_at < 0)
        finite = jax.tree.map(lambda new, old: jnp.where(healthy, new, old), current, finite)
        diverged_at = jnp.where(healthy | (diverged_at >= 0), diverged_at, start + length)
        record = jnp.where(healthy, recorder.measure(estimator, finite.ratio), jnp.inf)
        return (state, average, finite, diverged_at), record

    average = (jax.tree.map(jnp.zeros_like, state), jnp.zeros(runs)) if plan.projected else None
    carry = (state, average, state, jnp.full(runs, -1))
    whole, rest = divmod(plan.steps, plan.record_every)
    starts = jnp.arange(whole) * plan.record_every
    carry, curve = lax.scan(partial(block, length=plan.record_every), carry, starts)
    if rest:
        carry, last = block(carry, jnp.asarray(whole * plan.record_every), rest)
        curve = jnp.concatenate([curve, last[None]])
    return Outcome(carry[2], curve, carry[3])


def replay(plan: Plan, source: Source, seed: int) -> Any:
    """The numbers that `train` drew from the source, (steps · batch_size, 3): the same samples for another solver."""
    _, draw_key = _keys(seed)
    whole, rest = divmod(plan.steps, plan.record_every)

    def draw(start: Any, length: int) -> Any:
        return source.draw(jax.random.fold_in(draw_key, start), length * plan.batch_size)

    starts = jnp.arange(whole) * plan.record_every
    drawn = jax.vmap(partial(draw, length=plan.record_every))(starts).reshape(-1, 3)
    return drawn if rest == 0 else jnp.concatenate([drawn, draw(whole * plan.record_every, rest)])


def _keys(seed: Any) -> tuple[Any, Any]:
    """One key for the initial weights, one for the draws."""
    init_key, draw_key = jax.random.split(jax.random.key(seed))
    return init_key, draw_key


def _update(estimator: Estimator, plan: Plan, hyper: dict[str, Any], batch: Batch, state: State, rate: Any) -> State:
    """One simultaneous step of both players."""
    values = (
        batch.current.predict(state.ratio),
        batch.current.predict(state.critic),
        batch.following.predict(state.critic),
        batch.initial.predict(state.critic),
        state.norm_multiplier,
    )

    def mean_objective(raw: Any, *others: Any) -> Any:
        return jnp.sum(estimator.objective(Terms(estimator.ratio(raw), *others))) / plan.batch_size

    raw_grad, critic_grad, next_grad, initial_grad, norm_grad = jax.grad(mean_objective, argnums=range(5))(*values)
    ratio_rate, critic_rate = rate, rate
    if plan.projected:
        # Algorithm 1 measures each player's steps in units of its own ball.
        ratio_rate, critic_rate = rate * hyper["ratio_step"], rate * hyper["critic_step"]
    if plan.estimator.ratio_minimises:
        ratio_move, critic_move = -ratio_rate, critic_rate
    else:
        ratio_move, critic_move = ratio_rate, -critic_rate
    ratio = state.ratio * (1 - ratio_rate * hyper["ridge"]) if plan.with_ridge else state.ratio
    ratio = batch.current.add(ratio, ratio_move * raw_grad)
    critic = batch.current.add(state.critic, critic_move * critic_grad)
    critic = batch.following.add(critic, critic_move * next_grad)
    critic = batch.initial.add(critic, critic_move * initial_grad)
    return State(ratio, critic, state.norm_multiplier + critic_move * norm_grad)


def _project(state: State, hyper: dict[str, Any]) -> State:
    """W on the ball of radius ratio_radius, y = [κ; η] on that of radius critic_radius."""
    shrink_ratio = _shrink(jnp.sum(state.ratio**2, axis=0), hyper["ratio_radius"])
    shrink_critic = _shrink(jnp.sum(state.critic**2, axis=0) + state.norm_multiplier**2, hyper["critic_radius"])
    return State(state.ratio * shrink_ratio, state.critic * shrink_critic, state.norm_multiplier * shrink_critic)


def _include(average: tuple[State, Any], state: State, rate: Any) -> tuple[State, Any]:
    """The step-weighted mean Σα_t z_t / Σα_t of the iterates, with one more of them, and its total weight."""
    mean, total = average
    total = total + rate
    return jax.tree.map(lambda old, new: old + (new - old) * (rate / total), mean, state), total


def _shrink(squared_norm: Any, radius: Any) -> Any:
    return jnp.minimum(1.0, radius * lax.rsqrt(jnp.maximum(squared_norm, 1e-30)))


def _healthy(state: State) -> Any:
    """Which runs have only finite parameters of a sane size; a comparison with NaN is false."""
    checks = [jnp.all(jnp.abs(leaf) < LARGEST, axis=tuple(range(leaf.ndim - 1))) for leaf in state]
    return checks[0] & checks[1] & checks[2]


def bind(template: Any, numbers: dict[str, Any]) -> Any:
    """A copy of a frozen dataclass with traced numbers in place of its own; its checks are for real numbers."""
    bound = copy.copy(template)
    for name, value in numbers.items():
        object.__setattr__(bound, name, value)
    return bound


@partial(jax.jit, static_argnames="plan")
def train_seeds(plan: Plan, source: Source, recorder: Recorder, hyper: dict[str, Any], seeds: Any) -> Outcome:
    """`train` for several seeds at once: each result gets a leading axis."""
    return jax.vmap(lambda seed: train(plan, source, recorder, hyper, seed))(seeds)
