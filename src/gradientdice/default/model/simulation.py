"""Paths of the policy in the learned dynamics, all networks together: one call of the policy for each simulated step.

Ends are drawn from the learned probability, and an ended path goes on from an initial state: below discount 1 its
return stops there, at discount 1 it goes on, which is what restarts mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from gradientdice.default.model.dynamics import Dynamics, LearnedStep
from gradientdice.default.model.encoding import Encoding
from gradientdice.default.model.noise import DRAWS
from gradientdice.default.model.starts import Starts
from gradientdice.policies import DiscretePolicy, SamplingPolicy


@dataclass(frozen=True, eq=False)
class Paths:
    """Simulated paths: of j networks, p paths each, with h steps.

    Attributes:
        states: (h, j, p, s) the state before each step, standardised.
        reached: (h, j, p, s) the state that each step reached, which is the next step's unless the path was moved.
        rewards: (h, j, p).
        ended: (h, j, p) after which steps the path ended and went on from an initial state.
        cut: (h, p) after which steps the path was moved, or left off: the return is continued from the state reached.
        left_share: the share of steps whose next state would have left the log's range.
    """

    states: Float[np.ndarray, "h j p s"]
    reached: Float[np.ndarray, "h j p s"]
    rewards: Float[np.ndarray, "h j p"]
    ended: Bool[np.ndarray, "h j p"]
    cut: Bool[np.ndarray, "h p"]
    left_share: float


class _World(eqx.Module):
    """What a simulated step needs beside states and actions; see `Starts` for the last three."""

    learned: LearnedStep
    center: Float[Array, " d"]
    scale: Float[Array, " d"]
    restarts: Float[Array, "j r s"]
    logged: Float[Array, "m j q s"]
    length: Int[Array, ""]

    @classmethod
    def of(cls, dynamics: Dynamics, starts: Starts) -> _World:
        encoding = dynamics.encoding
        # Without any move there is still an array, which is not looked at.
        logged = starts.logged if len(starts.logged) else starts.paths[None, :, starts.long :]

        def single(array: np.ndarray) -> Array:
            return jnp.asarray(array, dtype=jnp.float32)

        return cls(
            dynamics.step,
            single(encoding.center),
            single(encoding.scale),
            single(starts.restarts),
            single(logged),
            jnp.asarray(starts.length),
        )


class _Step(NamedTuple):
    """What one step of all paths gives: (j, p, …) each; `current` is where the next step begins."""

    current: Any
    reached: Any
    reward: Any
    ended: Any
    left: Any


class _Draws(NamedTuple):
    """Random numbers of a step, (p,) each; the same for every network, which then differ by what they learned alone."""

    noise: Any  # the row of the noise
    restart: Any  # the initial state from which to go on after an end
    end: Any  # below the probability of an end, the path ends
    action: Any  # for discrete actions


def _draws(world: _World, horizon: int, paths: int, rng: np.random.Generator) -> _Draws:
    """The draws of all steps, (h, p) each. By NumPy: JAX's generators take long to compile."""
    shape = (horizon, paths)
    starts = world.restarts.shape[1]
    uniform = (rng.random(shape, dtype=np.float32) for _ in range(2))
    return _Draws(rng.integers(DRAWS, size=shape), rng.integers(starts, size=shape), *uniform)


def _step(world: _World, number: Any, states: Any, actions: Any, draws: _Draws) -> _Step:
    """One step of all paths of all networks."""
    paths = states.shape[1]
    noise = jnp.broadcast_to(draws.noise, states.shape[:2])
    following, reward, chance, left = world.learned(states, actions, noise)
    ended = draws.end < chance
    reached = jnp.where(ended[..., None], world.restarts[:, draws.restart], following)
    left &= ~ended
    done = number + 1
    fresh = world.logged[jnp.clip(done // world.length - 1, 0, len(world.logged) - 1)]
    first = paths - fresh.shape[1]
    moved = jnp.where(done % world.length == 0, fresh, reached[:, first:])
    return _Step(jnp.concatenate([reached[:, :first], moved], axis=1), reached, reward, ended, left)


_compiled_step = eqx.filter_jit(_step)


def simulate(dynamics: Dynamics, policy: DiscretePolicy | SamplingPolicy, starts: Starts, seed: int) -> Paths:
    """Simulates the policy in every network from states of its own.

    Args:
        dynamics: the networks.
        policy: called once for each step, with the states of all paths; a JAX function is compiled with all steps.
        starts: where the paths start, go on, and are moved to.
        seed: for actions, noise and ends.
    """
    horizon, world = starts.horizon, _World.of(dynamics, starts)
    rng = np.random.default_rng([seed, 1])
    draws = _draws(world, horizon, starts.paths.shape[1], rng)
    run = _scanned if policy.jax else _stepped
    states, reached, rewards, ended, left = run(world, starts.paths, draws, policy, dynamics.encoding, rng)
    cut = np.zeros((horizon, starts.paths.shape[1]), dtype=bool)
    cut[-1], cut[starts.length - 1 :: starts.length, starts.long :] = True, True
    return Paths(states, reached, rewards, ended, cut, float(left.mean()))


def _stepped(
    world: _World,
    first: Float[np.ndarray, "j p s"],
    draws: _Draws,
    policy: DiscretePolicy | SamplingPolicy,
    encoding: Encoding,
    rng: np.random.Generator,
) -> tuple[np.ndarray, ...]:
    """Each step is one call of the policy and one of a compiled function."""
    horizon, (count, paths, size) = len(draws.end), first.shape
    states, reached = (np.empty((horizon, count, paths, size), dtype=np.float32) for _ in range(2))
    rewards = np.empty((horizon, count, paths), dtype=np.float32)
    ended, left = np.zeros(rewards.shape, dtype=bool), np.zeros(rewards.shape, dtype=bool)
    current = first
    for number in range(horizon):
        states[number] = current
        raw = encoding.raw_states(current.reshape(-1, size))
        if isinstance(policy, SamplingPolicy):
            chosen = policy.sample(raw, rng)
        else:
            chosen = drawn_actions(policy.probabilities_at(raw), np.tile(draws.action[number], count))
        actions = encoding.actions(chosen).reshape(count, paths, -1)
        own = _Draws(*(part[number] for part in draws))
        step = _compiled_step(world, np.int32(number), states[number], actions, own)
        reached[number], rewards[number], ended[number], left[number] = step[1:]
        current = np.asarray(step.current)
    return states, reached, rewards, ended, left


def _scanned(
    world: _World,
    first: Float[np.ndarray, "j p s"],
    draws: _Draws,
    policy: DiscretePolicy | SamplingPolicy,
    encoding: Encoding,
    rng: np.random.Generator,
) -> tuple[np.ndarray, ...]:
    """All steps in one program."""

    @jax.jit
    def run(world: _World, first: Any, steps: Any) -> Any:
        def body(states: Any, step: tuple[Any, _Draws, Any]) -> tuple[Any, Any]:
            number, draws, key = step
            chance = jnp.broadcast_to(draws.action, states.shape[:2])
            actions = traced_actions(policy, encoding, states, chance, key)
            found = _step(world, number, states, actions, draws)
            return found.current, (states, *found[1:])

        return jax.lax.scan(body, first, steps)[1]

    horizon = len(draws.end)
    keys = jax.random.split(jax.random.key(int(rng.integers(2**31))), horizon)
    found = run(world, jnp.asarray(first), (jnp.arange(horizon), draws, keys))
    return tuple(np.asarray(part) for part in found)


def traced_actions(
    policy: DiscretePolicy | SamplingPolicy, encoding: Encoding, states: Any, chance: Any, key: Any
) -> Float[Array, "j p k"]:
    """Actions, as inputs, of a policy that is a JAX function.

    Args:
        policy: with jax=True.
        encoding: of states and actions.
        states: (j, p, s) standardised.
        chance: (j, p) uniform draws, for discrete actions.
        key: for a sampler.
    """
    size = encoding.state_size
    center, scale = (jnp.asarray(part, dtype=jnp.float32) for part in (encoding.center, encoding.scale))
    steps = jnp.asarray(encoding.steps_per_unit, dtype=jnp.float32)
    exact = states * scale[:size] + center[:size]
    rounded = jnp.where(encoding.low == encoding.high, exact, jnp.rint(exact * steps) / steps)
    raw = rounded.reshape(-1, *encoding.state_shape)
    if isinstance(policy, SamplingPolicy):
        actions = jnp.asarray(policy.function(raw, key)).reshape(len(raw), -1)
        encoded = (actions - center[size:]) / scale[size:]
    else:
        cumulative = jnp.cumsum(policy.function(raw), axis=1)
        chosen = jnp.minimum((cumulative < chance.reshape(-1, 1)).sum(axis=1), policy.num_actions - 1)
        encoded = jax.nn.one_hot(chosen, policy.num_actions)
    return encoded.reshape(*states.shape[:2], -1)


def drawn_actions(probabilities: Float[np.ndarray, "n A"], chance: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """Discrete actions from uniform draws."""
    cumulative = np.cumsum(probabilities, axis=1)
    return np.minimum((cumulative < chance[:, None]).sum(axis=1), probabilities.shape[1] - 1)
