"""Q at every logged pair and V at every next and initial state, from paths of the policy in the learned dynamics:

    Q(s,a) = r̂ + γ (1 − p_end) Σ_{t<K−1} …,     V(s') = Σ_{t<K} γᵗ S_t r̂_t + γᴷ S_K V_φ(s_K),

with S_t the learned probability of no end before step t, and V_φ the fitted value, which weighs little after K steps.

Each row has one path from its next state and one from where the dynamics say that it goes, with the same random
numbers. If the dynamics are nearly right, the two stay together, and the randomness of the policy cancels in
r + γV' − Q. What is left of it differs from row to row and has mean 0, so that it adds noise to a doubly robust answer
and no bias: Q is the same function at pairs, next states and initial states, each time seen through a path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from gradientdice.data.transitions import Transitions
from gradientdice.estimators.model.dynamics import Dynamics, Units
from gradientdice.estimators.model.fitted_value import FittedValues
from gradientdice.estimators.model.network import Network
from gradientdice.estimators.model.simulation import drawn_actions
from gradientdice.policies import DiscretePolicy, SamplingPolicy
from gradientdice.problem.folds import Folds

# Rows × steps of a path: what a few seconds suffice for.
ROW_STEPS = 2_000_000
FEWEST_STEPS, MOST_STEPS = 10, 200
# Paths from each initial state: there are few of them, and their noise does not cancel.
START_PATHS = 8


@dataclass(frozen=True, eq=False)
class RowValues:
    """Q and V of several discounts.

    Attributes:
        q: (n, g) at the logged pairs.
        next_value: (n, g) at the next states; at ended rows of no meaning.
        initial_value: (n0, g) at the initial states; None if the log has none.
    """

    q: Float[np.ndarray, "n g"]
    next_value: Float[np.ndarray, "n g"]
    initial_value: Float[np.ndarray, "n0 g"] | None


def row_values(
    dynamics: Dynamics,
    fitted: FittedValues,
    policy: DiscretePolicy | SamplingPolicy,
    data: Transitions,
    folds: Folds,
    discounts: Sequence[float],
    restarts: Float[np.ndarray, "f r s"],
    seed: int,
) -> RowValues:
    encoding, n = dynamics.encoding, len(data)
    members, networks = dynamics.members, folds.count * dynamics.members
    starts = data.start_states
    # Rows and initial states are dealt to the networks that did not see them.
    rows = _Dealt.of(folds.rows, members, folds.count)
    inputs = encoding.inputs(data)
    world = _World(dynamics.networks, Units.of(encoding), jnp.asarray(np.repeat(dynamics.noise, members, axis=0)))
    rng = np.random.default_rng([seed, 5])
    noise_rows = dynamics.noise.shape[1]
    steps = int(np.clip(ROW_STEPS // n, FEWEST_STEPS, MOST_STEPS))

    # The first step of Q: the logged action.
    size = encoding.state_size
    dealt = rows.take(inputs)
    shared = rng.integers(noise_rows, size=dealt.shape[:2])
    first, reward, end, _ = (
        np.asarray(part) for part in _compiled(world, dealt[..., :size], dealt[..., size:], shared, encoding.ends)
    )
    following = np.array(data.next_states)
    following[data.ended] = data.states[data.ended]
    real = rows.take(encoding.states(following))
    if starts is not None:
        copies = _Dealt.of(np.repeat(folds.initial, START_PATHS), members, folds.count)
        begun = copies.take(np.repeat(encoding.states(starts), START_PATHS, axis=0))
    else:
        copies, begun = None, np.zeros((networks, 0, size), dtype=np.float32)
    width = real.shape[1]
    states = np.concatenate([real, first, begun], axis=1)
    paths = states.shape[1]
    total = np.zeros((networks, paths, len(discounts)))
    alive = np.ones((networks, paths))
    gammas = np.asarray(discounts, dtype=np.float64)
    again = np.where(gammas == 1, np.repeat(fitted.at(restarts).mean(axis=1), members, axis=0), 0.0)  # (j, g)
    q_total = None
    for step in range(steps + 1):
        factor = gammas**step
        if step == steps - 1:
            tail = fitted.at(states[:, width : 2 * width])
            q_total = total[:, width : 2 * width] + factor * alive[:, width : 2 * width, None] * tail
        if step == steps:
            total += factor * alive[..., None] * fitted.at(states)
            break
        action_seed = [seed, 6, step]
        actions = _actions(policy, encoding, states, width, action_seed)
        draws = rng.integers(noise_rows, size=(networks, paths))
        draws[:, width : 2 * width] = draws[:, :width]
        moved, paid, ended, _ = (np.asarray(part) for part in _compiled(world, states, actions, draws, encoding.ends))
        ended = ended if encoding.ends else np.zeros_like(paid)
        total += factor * alive[..., None] * (paid[..., None] + gammas * ended[..., None] * again[:, None])
        alive = alive * (1 - ended)
        states = moved
    assert q_total is not None
    goes_on = 1 - (end if encoding.ends else np.zeros_like(reward))
    q = reward[..., None] + gammas * (goes_on[..., None] * q_total + (1 - goes_on)[..., None] * again[:, None])
    initial = None
    if copies is not None and starts is not None:
        initial = copies.back(total[:, 2 * width :], len(starts) * START_PATHS)
        initial = initial.reshape(len(starts), START_PATHS, -1).mean(axis=1)
    return RowValues(rows.back(q, n), rows.back(total[:, :width], n), initial)


class _World(eqx.Module):
    networks: Network
    units: Units
    noise: Any


def _step(world: _World, states: Any, actions: Any, draws: Any, ends: bool) -> Any:
    def one(network: Network, states: Any, actions: Any, noise: Any, draws: Any) -> Any:
        outputs = network(jnp.concatenate([states, actions], axis=1))
        following, reward, left = world.units.follow(states, outputs, noise[draws])
        end = jax.nn.sigmoid(outputs[:, -1]) if ends else reward
        return following, reward, end, left

    return jax.vmap(one)(world.networks, states, actions, world.noise, draws)


_compiled = eqx.filter_jit(_step)


def _actions(policy: Any, encoding: Any, states: np.ndarray, width: int, seed: list[int]) -> np.ndarray:
    """Actions at all states; the first `width` paths of each network and the next have the same random numbers."""
    networks, paths, size = states.shape
    parts = []
    for own in (states[:, :width], states[:, width : 2 * width], states[:, 2 * width :]):
        if not own.shape[1]:
            parts.append(np.zeros((networks, 0, parts[0].shape[-1]), dtype=np.float32))
            continue
        rng = np.random.default_rng(seed if len(parts) < 2 else [*seed, 1])
        raw = encoding.raw_states(own.reshape(-1, size))
        if isinstance(policy, SamplingPolicy):
            chosen = policy.sample(raw, rng)
        else:
            chosen = drawn_actions(policy.probabilities_at(raw), rng.random(len(raw)))
        parts.append(encoding.actions(chosen).reshape(networks, own.shape[1], -1))
    return np.concatenate(parts, axis=1)


@dataclass(frozen=True, eq=False)
class _Dealt:
    """Which rows each network simulates: as many for each, the last ones repeated."""

    rows: Int[np.ndarray, "j p"]
    counts: Int[np.ndarray, " j"]

    @classmethod
    def of(cls, fold: Int[np.ndarray, " n"], members: int, folds: int) -> _Dealt:
        own = [np.flatnonzero(fold == number)[member::members] for number in range(folds) for member in range(members)]
        counts = np.array([len(part) for part in own])
        most = int(counts.max())
        filled = [np.resize(part, most) if len(part) else np.zeros(most, dtype=int) for part in own]
        return cls(np.stack(filled), counts)

    def take(self, array: np.ndarray) -> np.ndarray:
        return array[self.rows]

    def back(self, values: np.ndarray, n: int) -> np.ndarray:
        found = np.zeros((n, values.shape[-1]))
        for own, part, count in zip(self.rows, values, self.counts, strict=True):
            found[own[:count]] = part[:count]
        return found
