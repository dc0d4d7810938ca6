"""The buffers of Stable-Baselines3: replay buffers of off-policy algorithms, rollout buffers of on-policy ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gradientdice.base.errors import InputError, require_choice
from gradientdice.log.formats.labels import state_books
from gradientdice.log.formats.observations import joined
from gradientdice.log.formats.raw import Raw

REPLAY, ROLLOUT = "the replay buffer", "the rollout buffer"


def read(buffer: Any, columns: Any, ends: str | None) -> Raw:
    """A buffer, or an algorithm that has one."""
    if columns:
        raise InputError("a buffer of Stable-Baselines3 has names of its own for everything: leave columns out.")
    if hasattr(buffer, "learn"):
        found = getattr(buffer, "replay_buffer", None)
        buffer = found if found is not None else getattr(buffer, "rollout_buffer", None)
    if hasattr(buffer, "episode_starts"):
        return _rollout(buffer, ends)
    if ends is not None:
        raise InputError("episode_ends= is for rollout buffers: a replay buffer knows how its episodes ended.")
    if not hasattr(buffer, "dones"):
        raise InputError(f"a {type(buffer).__name__} is no replay buffer or rollout buffer.")
    return _replay(buffer)


def _replay(buffer: Any) -> Raw:
    """A replay buffer, oldest row first, one environment after the other.

    `dones` are true at every end and `timeouts` at those by a time limit; the next observation of such a row is the
    last one of its own episode. Actions are stored as the networks give them, in [-1, 1].
    """
    size, start = (buffer.buffer_size, buffer.pos) if buffer.full else (buffer.pos, 0)
    if not size:
        raise InputError(f"{REPLAY} is empty.")
    order = (start + np.arange(size)) % buffer.buffer_size
    notes: list[str] = []
    if buffer.optimize_memory_usage:
        # Next observations are those of the following place; that of the oldest row was written over.
        following = joined("observations", _by_environment(buffer.observations, (order + 1) % buffer.buffer_size))
    else:
        following = joined("observations", _by_environment(buffer.next_observations, order))
    if not buffer.handle_timeout_termination:
        notes.append("this buffer does not tell time limits: every end is taken for a termination")
    done = _by_environment(buffer.dones, order).astype(bool)
    cut = _by_environment(buffer.timeouts, order).astype(bool) & done
    columns = {
        "states": joined("observations", _by_environment(buffer.observations, order)),
        "actions": _environment_actions(buffer, _by_environment(buffer.actions, order), notes),
        "rewards": _by_environment(buffer.rewards, order),
        "next_states": following,
        "terminated": done & ~cut,
        "truncated": cut,
    }
    environment = np.repeat(np.arange(buffer.n_envs), size)
    episodes, first = _episodes(done, environment)
    columns["episodes"] = episodes
    keep = np.ones(len(done), dtype=bool)
    if buffer.optimize_memory_usage and buffer.full:
        keep &= np.tile(order != start, buffer.n_envs)
    if buffer.full:
        # The oldest episode of each environment may have lost its first rows: it does not begin at a start.
        keep &= ~first if (~first).any() else keep
        if keep.sum() < len(keep):
            notes.append(f"{int((~keep).sum()):,} rows of episodes whose beginning was overwritten were dropped")
    last = np.append(environment[1:] != environment[:-1], True)
    columns["truncated"] |= last & ~done  # what the buffer ends with goes on
    books = state_books(_by_environment(buffer.observations, order[:1]))
    return Raw(REPLAY, {name: array[keep] for name, array in columns.items()}, notes, books=books)


def _rollout(buffer: Any, ends: str | None) -> Raw:
    """A rollout buffer: it has neither next observations nor what kind of ends its episodes had.

    At a time limit the algorithm adds the value of what followed to the reward, so that such rows cannot be used.
    """
    size = buffer.buffer_size if buffer.full else buffer.pos
    if not size:
        raise InputError(f"{ROLLOUT} is empty.")
    order, envs = np.arange(size), buffer.n_envs
    flat = buffer.generator_ready  # it has been learned from, and most arrays lost the dimension of environments

    def column(values: Any) -> Any:
        if isinstance(values, Mapping):
            return {name: column(part) for name, part in values.items()}
        return values if flat and len(values) == envs * size else _by_environment(values, order)

    starts = _by_environment(buffer.episode_starts, order).astype(bool)
    environment = np.repeat(np.arange(envs), size)
    last = np.append(environment[1:] != environment[:-1], True)
    over = np.append(starts[1:], False) & ~last
    if over.any() and ends is None:
        raise InputError(
            f"{ROLLOUT} does not say whether its episodes ended or were cut by a time limit. Say which: "
            'episode_ends="terminated" or episode_ends="truncated".'
        )
    if ends is not None:
        require_choice("episode_ends", ends, "terminated", "truncated")
    notes: list[str] = []
    actions, changed = _clipped(buffer, column(buffer.actions))
    columns = {
        "states": joined("observations", column(buffer.observations)),
        "actions": actions,
        "rewards": _by_environment(buffer.rewards, order),
        "terminated": over & (ends == "terminated"),
        "truncated": over & (ends == "truncated"),
        "episodes": _episodes(np.append(starts[1:], False) | last, environment)[0],
    }
    if changed:
        notes.append("actions were clipped to their bounds, as the environment gets them; log-probabilities left out")
    else:
        columns["behavior_log_probs"] = column(buffer.log_probs).reshape(-1)
    return Raw(ROLLOUT, columns, notes, books=state_books(column(buffer.observations)))


def _by_environment(values: Any, order: np.ndarray) -> Any:
    """(steps, environments, …) -> the steps of the first environment, then those of the second, …."""
    if isinstance(values, Mapping):
        return {name: _by_environment(part, order) for name, part in values.items()}
    return np.swapaxes(values[order], 0, 1).reshape(-1, *values.shape[2:])


def _episodes(over: np.ndarray, environment: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The episode of each row, and whether it is its environment's first."""
    begins = np.append(True, over[:-1] | (environment[1:] != environment[:-1]))
    episodes = np.cumsum(begins) - 1
    firsts = episodes[np.append(True, environment[1:] != environment[:-1])]
    return episodes, np.isin(episodes, firsts)


def _environment_actions(buffer: Any, actions: np.ndarray, notes: list[str]) -> np.ndarray:
    """Actions as the environment gets them: off-policy algorithms store those in boxes scaled to [-1, 1]."""
    space = buffer.action_space
    if type(space).__name__ != "Box" or ((space.low == -1) & (space.high == 1)).all():
        return actions
    if np.abs(actions).max() > 1:
        notes.append("actions lie outside [-1, 1]: they are taken as they are")
        return actions
    low, high = space.low.ravel(), space.high.ravel()
    notes.append("actions were scaled from [-1, 1] to the bounds of the action space")
    return low + 0.5 * (actions + 1.0) * (high - low)


def _clipped(buffer: Any, actions: np.ndarray) -> tuple[np.ndarray, bool]:
    """Actions within their bounds, and whether any lay outside."""
    space = buffer.action_space
    if type(space).__name__ != "Box":
        return actions, False
    within = np.clip(actions, space.low.ravel(), space.high.ravel())
    return within, bool((within != actions).any())
