"""Episodes, each with its own arrays, as one log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradientdice.base.arrays import as_numpy
from gradientdice.base.errors import InputError
from gradientdice.log.formats.labels import Labels, state_books
from gradientdice.log.formats.observations import joined
from gradientdice.log.formats.raw import Raw


@dataclass
class Episode:
    """One episode of T steps.

    Attributes:
        observations: T of them, or T + 1 where what followed the last step is known; arrays, dictionaries or tuples.
        actions: T.
        rewards: T.
        terminated: whether it ended in the environment.
        log_probs: T log-probabilities of the actions, if they are known.
    """

    observations: Any
    actions: Any
    rewards: Any
    terminated: bool
    log_probs: Any = None


def from_episodes(place: str, episodes: Iterable[Episode]) -> Raw:
    """All steps, one row each.

    The last step of an episode that did not end is cut by a time limit. If what followed it is not known the step is
    dropped; the step before it is then the last.
    """
    found: dict[str, list[np.ndarray]] = {}
    dropped = 0
    books: dict[str, Labels] = {}
    for number, episode in enumerate(episodes):
        books = state_books(episode.observations) if number == 0 else books
        columns = _rows(number, episode)
        dropped += len(as_numpy(episode.rewards)) - len(columns["rewards"])
        for name, array in columns.items():
            found.setdefault(name, []).append(array)
    if not found or not sum(len(part) for part in found["rewards"]):
        raise InputError(f"{place} has no steps whose next state is known.")
    if "behavior_log_probs" in found and len(found["behavior_log_probs"]) < len(found["rewards"]):
        raise InputError(f"{place} has log-probabilities in some episodes only.")
    notes = []
    if dropped:
        notes.append(
            f"{dropped:,} steps at time limits or at the end of a recording were dropped: what followed them is not "
            "in the log"
        )
    for name, parts in found.items():
        odd = next((number for number, part in enumerate(parts) if part.shape[1:] != parts[0].shape[1:]), None)
        if odd is not None:
            raise InputError(
                f"{place}: {name} of episode {odd} have the shape {parts[odd].shape[1:]}, those of the first "
                f"{parts[0].shape[1:]}."
            )
    return Raw(place, {name: np.concatenate(parts) for name, parts in found.items()}, notes, books=books)


def _rows(number: int, episode: Episode) -> dict[str, np.ndarray]:
    """The steps of one episode, without the last if what followed it is not known."""
    states, rewards = joined("observations", episode.observations), np.asarray(as_numpy(episode.rewards))
    rewards = rewards.reshape(len(rewards))
    if len(states) not in (len(rewards), len(rewards) + 1):
        raise InputError(
            f"episode {number} has {len(states)} observations and {len(rewards)} rewards: it must have as many, or one "
            "observation more."
        )
    steps, ended = len(rewards), bool(episode.terminated)
    if len(states) == steps:
        states = np.concatenate([states, states[-1:]])  # after an end it is not used
        steps -= 0 if ended else 1
    last = np.arange(steps) == steps - 1
    columns = {
        "states": states[:steps],
        "actions": joined("actions", episode.actions)[:steps],
        "rewards": rewards[:steps],
        "next_states": states[1 : steps + 1],
        "terminated": last & ended,
        "truncated": last & (not ended),
        "episodes": np.full(steps, number),
    }
    if episode.log_probs is not None:
        columns["behavior_log_probs"] = np.asarray(as_numpy(episode.log_probs)).reshape(-1)[:steps]
    return columns
