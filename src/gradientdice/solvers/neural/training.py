"""Stochastic primal-dual learning with networks: simultaneous steps of both players, many runs as one program.

A run's numbers (discount, norm_penalty, ridge, learning rate) and its seed are arrays over the runs; the program is
vmapped over them. It advances by blocks of updates, after each of which ρ̂ and the mean ratio over the whole log are
recorded on the device. Random numbers depend on seed and step alone, so that a run that goes on from a checkpoint is
the same, bit for bit, as one that was never stopped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

from gradientdice.errors import starts_missing
from gradientdice.estimators import Estimator
from gradientdice.estimators.terms import Terms
from gradientdice.functions.inputs import NetworkInputs
from gradientdice.functions.mlp import MLP
from gradientdice.solvers.neural.network import Layers, apply, init_layers
from gradientdice.solvers.schedules import Schedule
from gradientdice.solvers.sources import cumulative_bits
from gradientdice.solvers.training import ESTIMATOR_LEAVES, LARGEST, bind


@dataclass(frozen=True)
class NeuralPlan:
    """All of a training run that shapes its compiled program; see `PrimalDual` for what the fields mean."""

    estimator: Estimator
    schedule: Schedule
    functions: MLP
    steps: int
    batch_size: int
    record_every: int
    optimizer: optax.GradientTransformation
    clip_norm: float | None
    average: float
    target_rate: float | None
    with_ridge: bool


class NeuralData(eqx.Module):
    """A log on the device."""

    current: Any  # (n, d)
    following: Any  # (n, m, d)
    following_weights: Any  # (n, m)
    initial: Any  # (n0, m, d)
    initial_weights: Any  # (n0, m)
    rewards: Any  # (n,)
    weights: Any  # (n,), which sum to 1
    cumulative: Any  # of the weights, (n,), in units of 2⁻³²; None if all are equal
    ended: Any  # (n,) rows whose next state is the absorbing one; None if there are none
    restarts: Any  # (n,) rows after which an episode restarts; None if there are none
    sampled: bool = eqx.field(static=True)

    @classmethod
    def create(cls, inputs: NetworkInputs, discount: float) -> NeuralData:
        """A log for a discount: at 1 ended episodes restart instead of being absorbed."""
        restart = discount == 1 and (inputs.absorbing or inputs.restarts)
        if inputs.initial is None and (discount < 1 or restart):
            raise starts_missing(discount)
        used = inputs.without_absorbing() if restart else inputs
        weights = used.weights
        initial = used.following[:1] if used.initial is None else used.initial
        initial_weights = used.following_weights[:1] if used.initial_weights is None else used.initial_weights
        return cls(
            jnp.asarray(used.current),
            jnp.asarray(used.following),
            jnp.asarray(used.following_weights),
            jnp.asarray(initial),
            jnp.asarray(initial_weights),
            jnp.asarray(used.rewards),
            jnp.asarray(weights),
            None if np.all(weights == weights[0]) else cumulative_bits(weights),
            jnp.asarray(used.ended) if used.absorbing else None,
            jnp.asarray(used.ended) if restart else None,
            used.sampled,
        )


class Players(NamedTuple):
    """The parameters of both networks and η."""

    ratio: Layers
    critic: Layers
    norm_multiplier: Any


class RunState(NamedTuple):
    """All that a run carries from one update to the next."""

    players: Players
    optimizer: Any
    average: Players
    target: Layers
    finite: Players  # the last ones that were all finite: the answer of a run that diverged later
    diverged_at: Any  # −1: not


def start(functions: MLP, optimizer: optax.GradientTransformation, width: int, seeds: Any) -> RunState:
    """The first state of each run, (runs, …), for inputs of a width."""
    sizes = (width, *functions.hidden, 1)

    def one(seed: Any) -> RunState:
        first, second = jax.random.split(jax.random.fold_in(jax.random.key(seed), 0))
        scale = functions.output_scale
        players = Players(
            init_layers(first, sizes, scale, functions.ratio_start),
            init_layers(second, sizes, scale, 0.0),
            jnp.zeros(()),
        )
        return RunState(players, optimizer.init(players), players, players.critic, players, jnp.asarray(-1))

    return jax.vmap(one)(seeds)


def advance(
    plan: NeuralPlan, data: NeuralData, hyper: dict[str, Any], seeds: Any, state: RunState, number: Any, together: bool
) -> RunState:
    """The block of updates of this number, `record_every` of them, for all runs.

    An accelerator advances all runs together. On a CPU one after the other is faster: small products of many networks
    at a time are not what its libraries are made for.
    """
    times = number * plan.record_every + jnp.arange(plan.record_every)

    def one(numbers: dict[str, Any], seed: Any, state: RunState) -> RunState:
        estimator = bind(plan.estimator, {name: numbers[name] for name in ESTIMATOR_LEAVES if name in numbers})
        schedule = bind(plan.schedule, {name: numbers[name] for name in vars(plan.schedule) if name in numbers})
        key = jax.random.fold_in(jax.random.key(seed), 1)

        def step(state: RunState, time: Any) -> tuple[RunState, None]:
            moved = _update(plan, estimator, schedule, numbers, data, key, state, time)
            # The last block may reach beyond the last step.
            return jax.tree.map(lambda new, old: jnp.where(time < plan.steps, new, old), moved, state), None

        state, _ = lax.scan(step, state, times)
        current = state.average if plan.average > 0 else state.players
        healthy = _healthy(current) & (state.diverged_at < 0)
        finite = jax.tree.map(lambda new, old: jnp.where(healthy, new, old), current, state.finite)
        since = jnp.where(healthy | (state.diverged_at >= 0), state.diverged_at, times[-1] + 1)
        return state._replace(finite=finite, diverged_at=since)

    if together:
        return jax.vmap(one)(hyper, seeds, state)
    return lax.map(lambda run: one(*run), (hyper, seeds, state))


def record(estimator: Estimator, data: NeuralData, state: RunState, chunk: int, together: bool) -> Any:
    """(runs, 2): ρ̂ and E[τ] over the whole log; infinite for a run that diverged."""

    def one(run: tuple[Layers, Any]) -> Any:
        layers, diverged_at = run
        return jnp.where(diverged_at < 0, measure(estimator, layers, data, chunk), jnp.inf)

    runs = state.finite.ratio, state.diverged_at
    return jax.vmap(one)(runs) if together else lax.map(one, runs)


def measure(estimator: Estimator, ratio: Layers, data: NeuralData, chunk: int) -> Any:
    """ρ̂ = E[τ r] and E[τ] over the whole log, a chunk of rows at a time."""
    n = len(data.rewards)
    whole = n // chunk * chunk
    both = jnp.stack([data.weights * data.rewards, data.weights], axis=1)

    def part(total: Any, rows: tuple[Any, Any]) -> tuple[Any, None]:
        inputs, factors = rows
        return total + jnp.matmul(estimator.ratio(apply(ratio, inputs)), factors, precision="highest"), None

    shaped = data.current[:whole].reshape(-1, chunk, data.current.shape[1]), both[:whole].reshape(-1, chunk, 2)
    total, _ = lax.scan(part, jnp.zeros(2), shaped)
    if whole < n:
        total, _ = part(total, (data.current[whole:], both[whole:]))
    return total


def _update(
    plan: NeuralPlan,
    estimator: Estimator,
    schedule: Schedule,
    numbers: dict[str, Any],
    data: NeuralData,
    key: jax.Array,
    state: RunState,
    time: Any,
) -> RunState:
    """One simultaneous step of both players on one minibatch."""
    batch = draw(data, jax.random.fold_in(key, time), plan.batch_size)
    sizes = plan.batch_size, plan.batch_size * (1 + batch.following.shape[1])

    def objective(players: Players) -> Any:
        raw = apply(players.ratio, batch.current)
        # One pass of the critic over everything that it is asked about.
        width = batch.current.shape[-1]
        parts = (batch.current, batch.following.reshape(-1, width), batch.initial.reshape(-1, width))
        values = apply(players.critic, jnp.concatenate(parts))
        critic, following, initial = jnp.split(values, sizes)
        if plan.target_rate is not None:
            following = apply(state.target, parts[1])
        terms = Terms(
            estimator.ratio(raw),
            critic,
            jnp.sum(following.reshape(batch.following_weights.shape) * batch.following_weights, axis=1),
            jnp.sum(initial.reshape(batch.initial_weights.shape) * batch.initial_weights, axis=1),
            players.norm_multiplier,
        )
        return jnp.mean(estimator.objective(terms))

    gradient = jax.grad(objective)(state.players)
    sign = 1.0 if plan.estimator.ratio_minimises else -1.0
    ratio = jax.tree.map(lambda g: sign * g, gradient.ratio)
    if plan.with_ridge:
        ratio = jax.tree.map(lambda g, p: g + numbers["ridge"] * p, ratio, state.players.ratio)
    critic, norm = jax.tree.map(lambda g: -sign * g, (gradient.critic, gradient.norm_multiplier))
    descent = Players(ratio, critic, norm)
    if plan.clip_norm is not None:
        length = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(descent)))
        shrink = jnp.minimum(1.0, plan.clip_norm / jnp.maximum(length, 1e-30))
        descent = jax.tree.map(lambda g: g * shrink, descent)
    move, optimizer = plan.optimizer.update(descent, state.optimizer, state.players)
    rate = schedule.at(time)
    players = jax.tree.map(lambda p, m: p + rate * m, state.players, move)
    average, target = players, players.critic
    if plan.average > 0:
        average = jax.tree.map(lambda a, p: plan.average * a + (1 - plan.average) * p, state.average, players)
    if plan.target_rate is not None:
        share = plan.target_rate
        target = jax.tree.map(lambda t, p: (1 - share) * t + share * p, state.target, players.critic)
    return state._replace(players=players, optimizer=optimizer, average=average, target=target)


class Minibatch(NamedTuple):
    """Inputs and weights of some transitions and as many initial states."""

    row: Any
    current: Any  # (B, d)
    following: Any  # (B, m, d)
    following_weights: Any  # (B, m)
    initial: Any
    initial_weights: Any


def draw(data: NeuralData, key: jax.Array, size: int) -> Minibatch:
    """A minibatch: rows in proportion to their weights, with replacement."""
    row_key, start_key, draw_key = jax.random.split(key, 3)
    if data.cumulative is None:
        row = jax.random.randint(row_key, (size,), 0, len(data.rewards))
    else:
        row = jnp.searchsorted(data.cumulative, jax.random.bits(row_key, (size,), jnp.uint32), side="right")
    return fill(data, row, start_key, draw_key)


def fill(data: NeuralData, row: Any, start_key: jax.Array, draw_key: jax.Array) -> Minibatch:
    """The minibatch of given rows; of several draws of an action one is taken."""
    size = len(row)
    starts, again = jax.random.randint(start_key, (2, size), 0, len(data.initial))
    if data.sampled:
        # Any one of the draws has the right distribution, and one pass of the critic is cheaper than several.
        which = jax.random.randint(draw_key, (3, size), 0, data.following.shape[1])
        following, initial = data.following[row, which[0]][:, None], data.initial[starts, which[1]][:, None]
        restart = data.initial[again, which[2]][:, None]
        following_weights = initial_weights = restart_weights = jnp.ones((size, 1))
    else:
        following, following_weights = data.following[row], data.following_weights[row]
        initial, initial_weights = data.initial[starts], data.initial_weights[starts]
        restart, restart_weights = data.initial[again], data.initial_weights[again]
    if data.restarts is not None:
        ended = data.restarts[row]
        following = jnp.where(ended[:, None, None], restart, following)
        following_weights = jnp.where(ended[:, None], restart_weights, following_weights)
    return Minibatch(row, data.current[row], following, following_weights, initial, initial_weights)


def _healthy(players: Players) -> Any:
    """Whether all parameters are finite and of a sane size; a comparison with NaN is false."""
    return jnp.all(jnp.stack([jnp.all(jnp.abs(leaf) < LARGEST) for leaf in jax.tree.leaves(players)]))


start_runs = jax.jit(start, static_argnames=("functions", "optimizer", "width"))
# On a GPU, generating and timing matrix products for small batches takes longer than a whole grid, and gains nothing:
# the library's serve. The records, in which most of the time goes, get generated ones. Other devices look at neither.
advance_runs = jax.jit(
    advance,
    static_argnames=("plan", "together"),
    donate_argnames=("state",),
    compiler_options={"xla_gpu_enable_triton_gemm": False},
)
record_runs = jax.jit(record, static_argnames=("estimator", "chunk", "together"))
