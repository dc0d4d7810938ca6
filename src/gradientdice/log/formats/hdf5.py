"""HDF5 files: D4RL's layout (one row per step, names by habit), and what d3rlpy writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gradientdice.base.errors import InputError
from gradientdice.base.extras import optional
from gradientdice.log.files.reading import guarded, require_readable
from gradientdice.log.formats import d3rlpy, tables
from gradientdice.log.formats.raw import Raw

# True at every end in the files of d3rlpy's first version, beside `terminals`.
EPISODE_ENDS = "episode_terminals"


def read(path: Path, columns: Any) -> Raw:
    """A file of either kind."""
    library = optional("h5py", "hdf5")
    require_readable(path)

    def content() -> Raw:
        with library.File(path, "r") as file:
            if d3rlpy.is_dump(file):
                if columns:
                    raise InputError(f"{path} was written by d3rlpy, whose names are known: leave columns out.")
                return d3rlpy.read_dump(str(path), file)
            return tables.from_mapping(str(path), _arrays(library, file), columns)

    return guarded(path, "a readable HDF5 file", content)


def _arrays(library: Any, file: Any) -> Mapping[str, np.ndarray]:
    """All arrays with a row per step by name; those of groups as group/name."""
    datasets: dict[str, Any] = {}
    file.visititems(lambda name, item: datasets.update({name: item}) if isinstance(item, library.Dataset) else None)
    rewards = [item.shape[0] for name, item in datasets.items() if name.startswith("rew") and item.ndim]
    arrays = {
        name: item[()]
        for name, item in datasets.items()
        if item.ndim and item.dtype.kind in "buifSO" and (not rewards or item.shape[0] == rewards[0])
    }
    if EPISODE_ENDS in arrays and "terminals" in arrays:
        ended = arrays["terminals"].astype(bool)
        arrays["timeouts"] = arrays.pop(EPISODE_ENDS).astype(bool) & ~ended
    return arrays
