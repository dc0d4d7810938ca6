"""d3rlpy's replay buffers, `MDPDataset` among them, and the .h5 files that they are dumped to.

An episode has as many observations as steps. What followed the last step of an episode that a time limit cut is not
stored, so that this step is dropped; an episode that ended needs nothing after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gradientdice.base.errors import InputError
from gradientdice.log.formats.episodes import Episode, from_episodes
from gradientdice.log.formats.raw import Raw


def read(source: Any, columns: Any) -> Raw:
    """A replay buffer, or a list of its episodes."""
    if columns:
        raise InputError("d3rlpy's buffers have names of their own for everything: leave columns out.")
    episodes = getattr(source, "episodes", None)
    if episodes is None:
        raise InputError(f"a {type(source).__name__} of d3rlpy has no episodes: give a ReplayBuffer or MDPDataset.")
    return from_episodes(
        "the d3rlpy buffer",
        (Episode(_parts(e.observations), e.actions, e.rewards, e.terminated) for e in episodes),
    )


def is_dump(file: Mapping[str, Any]) -> bool:
    """Whether an HDF5 file was written by `ReplayBuffer.dump`."""
    return all(name in file for name in ("columns", "num_episodes", "version"))


def read_dump(place: str, file: Mapping[str, Any]) -> Raw:
    """A file that `ReplayBuffer.dump` wrote."""
    return from_episodes(place, _dumped(file))


def _dumped(file: Mapping[str, Any]) -> Iterator[Episode]:
    for number in range(int(file["num_episodes"][()])):
        observations = _array(file, "observations", number)
        actions, rewards = _array(file, "actions", number), _array(file, "rewards", number)
        yield Episode(observations, actions, rewards, bool(file[f"terminated_{number}"][()]))


def _array(file: Mapping[str, Any], name: str, number: int) -> Any:
    """An array of an episode, or the arrays of its parts."""
    if f"{name}_{number}" in file:
        return file[f"{name}_{number}"][()]
    parts = [name for name in (f"{name}_{number}_{part}" for part in range(len(file))) if name in file]
    return tuple(file[part][()] for part in parts)


def _parts(observations: Any) -> Any:
    """Several observations per step are a list there."""
    return tuple(observations) if isinstance(observations, (list, tuple)) else observations
