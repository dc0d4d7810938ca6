"""One update: both players move at once, on the gradients at the same point, for any objective and function class.

The gradient of the objective at the functions' values is written once. A function class then carries it to the
parameters: plain steps are added where a minibatch has features; optimisers and clipping need the whole gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from gradientdice.dice.saddle import SaddleObjective, Terms
from gradientdice.dice.stochastic.averaging import Average
from gradientdice.dice.stochastic.function_class import Add, Players, Values
from gradientdice.dice.stochastic.plan import Plan


class Iterate(NamedTuple):
    """What one update hands to the next; what a plan does not use is None."""

    players: Players
    optimizer: Any = None
    average: Average | None = None
    target: Any = None


class Slopes(NamedTuple):
    """The gradient of the mean objective at the functions' values and at η."""

    values: Values
    norm_multiplier: Any


def first_iterate(plan: Plan, players: Players) -> Iterate:
    """Before any update."""
    optimizer = None if plan.optimizer is None else _each_run(plan.optimizer.init, players)(players)
    average = None if plan.averaging is None else plan.averaging.start(players)
    return Iterate(players, optimizer, average, None if plan.target_rate is None else players.critic)


def update(
    plan: Plan, estimator: SaddleObjective, numbers: dict[str, Any], batch: Any, now: Iterate, rate: Any
) -> Iterate:
    """One step of both players on one minibatch.

    Args:
        plan: the static part.
        estimator: with the runs' numbers in place.
        numbers: the ridge and, of a projected run, radii and units of steps.
        batch: from the source.
        now: the iterate to move.
        rate: the learning rate of this step.
    """
    players, optimizer, average, target = now
    values, add = plan.functions.at(players, batch)
    if plan.target_rate is not None:
        values = values._replace(next_critic=plan.functions.next_values(target, batch))
    slopes = _slopes(estimator, values, players.norm_multiplier)
    if plan.target_rate is not None:
        held = jnp.zeros_like(slopes.values.next_critic)
        slopes = slopes._replace(values=slopes.values._replace(next_critic=held))
    if plan.plain:
        players = _plain_step(plan, numbers, players, slopes, add, rate)
    else:
        descent = _descent(plan, numbers, players, slopes, add)
        move, optimizer = _each_run(lambda *given: _move(plan, *given), players)(descent, optimizer, players)
        players = jax.tree.map(lambda p, m: p + rate * m, players, move)
    if plan.projected:
        players = _project(players, numbers)
    if plan.averaging is not None and average is not None:
        average = plan.averaging.include(average, players, rate)
    if plan.target_rate is not None:
        share = plan.target_rate
        target = jax.tree.map(lambda t, p: (1 - share) * t + share * p, target, players.critic)
    return Iterate(players, optimizer, average, target)


def _slopes(estimator: SaddleObjective, values: Values, norm_multiplier: Any) -> Slopes:
    size = len(values.raw)

    def mean_objective(values: Values, norm_multiplier: Any) -> Any:
        raw, critic, next_critic, initial_critic = values
        terms = Terms(estimator.ratio(raw), critic, next_critic, initial_critic, norm_multiplier)
        # The gradient of a sum over runs is each run's own gradient.
        return jnp.sum(estimator.objective(terms)) / size

    return Slopes(*jax.grad(mean_objective, argnums=(0, 1))(values, norm_multiplier))


def _plain_step(plan: Plan, numbers: dict[str, Any], players: Players, slopes: Slopes, add: Add, rate: Any) -> Players:
    """The players moved along their gradients by the rate."""
    ratio_rate = critic_rate = rate
    if plan.projected:
        # Algorithm 1 measures each player's steps in units of its own ball.
        ratio_rate, critic_rate = rate * numbers["ratio_step"], rate * numbers["critic_step"]
    ratio = players.ratio
    if plan.with_ridge:
        ratio = jax.tree.map(lambda p: p * (1 - ratio_rate * numbers["ridge"]), ratio)
    minimises = plan.estimator.ratio_minimises
    ratio_move, critic_move = (-ratio_rate, critic_rate) if minimises else (ratio_rate, -critic_rate)
    raw, *others = slopes.values
    onto = Players(ratio, players.critic, players.norm_multiplier + critic_move * slopes.norm_multiplier)
    return add(onto, Values(ratio_move * raw, *(critic_move * slope for slope in others)))


def _descent(plan: Plan, numbers: dict[str, Any], players: Players, slopes: Slopes, add: Add) -> Players:
    """The direction that each player wants to leave: its gradient, or minus that for the one who maximises."""
    sign = 1.0 if plan.estimator.ratio_minimises else -1.0
    raw, *others = slopes.values
    zeros = jax.tree.map(jnp.zeros_like, players)
    descent = add(zeros, Values(sign * raw, *(-sign * slope for slope in others)))
    ratio = descent.ratio
    if plan.with_ridge:
        ratio = jax.tree.map(lambda g, p: g + numbers["ridge"] * p, ratio, players.ratio)
    return Players(ratio, descent.critic, -sign * slopes.norm_multiplier)


def _move(plan: Plan, descent: Players, optimizer: Any, players: Players) -> tuple[Players, Any]:
    """One run's clipped gradient through its optimiser; plain steps if there is none."""
    if plan.clip_norm is not None:
        length = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(descent)))
        shrink = jnp.minimum(1.0, plan.clip_norm / jnp.maximum(length, 1e-30))
        descent = jax.tree.map(lambda g: g * shrink, descent)
    if plan.optimizer is None:
        return jax.tree.map(jnp.negative, descent), None
    move: Any
    move, optimizer = plan.optimizer.update(descent, optimizer, players)
    return move, optimizer


def _each_run(function: Callable[..., Any], players: Players) -> Callable[..., Any]:
    """A function of one run for players that carry several as their last axis: norms must not mix them."""
    several = jnp.ndim(players.norm_multiplier) > 0
    return jax.vmap(function, in_axes=-1, out_axes=-1) if several else function


def _project(players: Players, numbers: dict[str, Any]) -> Players:
    """W on the ball of radius ratio_radius, y = [κ; η] on that of radius critic_radius."""
    ratio, critic, norm_multiplier = players
    shrink_ratio = _shrink(jnp.sum(ratio**2, axis=0), numbers["ratio_radius"])
    shrink_critic = _shrink(jnp.sum(critic**2, axis=0) + norm_multiplier**2, numbers["critic_radius"])
    return Players(ratio * shrink_ratio, critic * shrink_critic, norm_multiplier * shrink_critic)


def _shrink(squared_norm: Any, radius: Any) -> Any:
    return jnp.minimum(1.0, radius * lax.rsqrt(jnp.maximum(squared_norm, 1e-30)))
