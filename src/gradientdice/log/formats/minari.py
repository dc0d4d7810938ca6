"""Minari's datasets: by name, by folder, or as an object.

Each episode has one observation more than it has steps, so that every step's next state is known, at time limits too.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from gradientdice.base.errors import InputError
from gradientdice.base.extras import optional
from gradientdice.log.files.reading import is_folder, reason
from gradientdice.log.formats.episodes import Episode, from_episodes
from gradientdice.log.formats.raw import Raw

NAME = re.compile(r"(?:[\w.-]+/)*[\w.-]+-v\d+")
# What says that a folder is a dataset, beside or above its data.
METADATA = "metadata.json"


def is_dataset(path: Path) -> bool:
    """Whether this is a dataset's folder, or a name like D4RL/door/human-v2 where there is no such file."""
    folder = is_folder(path)
    if folder is None:
        return not path.is_absolute() and NAME.fullmatch(path.as_posix()) is not None
    return folder and _data_folder(path) is not None


def read_path(path: Path, columns: Any) -> Raw:
    """A dataset by its folder or its name."""
    library = optional("minari", "minari")
    folder = _data_folder(path) if path.is_dir() else None
    try:
        dataset = library.load_dataset(path.as_posix()) if folder is None else library.MinariDataset(str(folder))
    except FileNotFoundError as error:
        raise InputError(
            f"There is no file {path}, and no Minari dataset of this name on this machine: minari download {path}."
        ) from error
    except Exception as error:  # whatever damaged bytes make it raise
        raise InputError(f"{path} is not a readable Minari dataset ({reason(error)}).") from error
    return read(dataset, columns)


def read(dataset: Any, columns: Any) -> Raw:
    """A dataset that is loaded."""
    place = f"the Minari dataset {getattr(dataset, 'id', '')}".rstrip()
    if columns:
        raise InputError(f"{place} has names of its own for everything: leave columns out.")
    return from_episodes(place, (_episode(episode) for episode in dataset.iterate_episodes()))


def _episode(episode: Any) -> Episode:
    return Episode(
        episode.observations, episode.actions, episode.rewards, bool(np.asarray(episode.terminations)[-1])
    )  # fmt: skip


def _data_folder(path: Path) -> Path | None:
    """The folder with the data of a dataset: this one, or `data` in it."""
    return next((folder for folder in (path / "data", path) if (folder / METADATA).is_file()), None)
