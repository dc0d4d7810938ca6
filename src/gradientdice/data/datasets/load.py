"""`load`: a log from a file, a data frame, a mapping of arrays, or another library's own object."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gradientdice.data.datasets import tables
from gradientdice.data.datasets.complete import complete
from gradientdice.data.datasets.names import checked
from gradientdice.data.datasets.raw import Raw
from gradientdice.data.files.csv import CSV
from gradientdice.data.files.reading import as_path, is_folder, kind_of, reason
from gradientdice.data.transitions import Transitions
from gradientdice.errors import InputError
from gradientdice.extras import frameworks_of

# The library of an object -> the module here that reads it; none is imported before it is needed.
OBJECTS = {"minari": "minari", "d3rlpy": "d3rlpy", "stable_baselines3": "sb3", "datasets": "hugging_face"}
BUFFERS = "stable_baselines3"
HDF5 = (".h5", ".hdf5")


def load(
    source: str | Path | Mapping[str, Any] | Any,
    *,
    columns: Mapping[str, str | Sequence[str] | None] | None = None,
    csv: CSV | None = None,
    ends: str | None = None,
) -> Transitions:
    """Reads a log, from a file or from an object in memory.

    Columns are found by the names that are usual for them (`obs`, `next_obs`, `action`, `reward`, `done`, `timeout`,
    `episode_id` and others); the log's `notes` say what was guessed. Next states that are not stored are made from the
    next row of the same episode. Words among actions or states become codes, with `action_names` and `state_names`.

    Args:
        source: a .npz, .parquet (file or folder), .csv, .jsonl or .h5 file, also packed by gzip where it is text; the
            folder or name of a Minari dataset; a data frame of any library with Arrow's stream interface; a mapping of
            arrays; a table of `datasets`; a dataset of Minari or d3rlpy; a buffer of Stable-Baselines3.
        columns: field -> the name it has there, several names whose columns are joined to a vector, or None for a field
            that the log does not have, whatever a column is called. Of a log of bandits, whose rows have no order,
            say so of `next_states`: every row is then an episode of one step.
        csv: how a CSV file is written, if not in the usual way.
        ends: "terminated" or "truncated": what the ends of episodes are, for a rollout buffer, which does not say.

    Raises:
        InputError: if the source is missing, empty, damaged, of another kind, or lacks a field.

    Example:
        >>> import gradientdice as gd
        >>> log = {
        ...     "obs": [[0.0], [1.0], [0.0]],
        ...     "action": ["go", "stay", "go"],
        ...     "reward": [0.0, 1.0, 0.0],
        ...     "done": [False, True, True],
        ... }
        >>> data = gd.load(log)
        >>> data.action_names, data.next_states.tolist(), data.episodes.tolist()
        (('go', 'stay'), [[1.0], [1.0], [0.0]], [0, 0, 1])
    """
    if csv is not None and not isinstance(csv, CSV):
        raise InputError(f"csv must be gradientdice.CSV(…), not {csv!r:.60}.")
    if isinstance(source, Transitions):
        return source
    try:
        raw = _read(source, columns, csv, ends)
        raw.one_step = "next_states" in checked(columns)[1]
        return complete(raw)
    except InputError:
        raise
    except Exception as error:  # an object of another library fails in any way
        what = source if isinstance(source, (str, os.PathLike)) else f"the {type(source).__name__}"
        raise InputError(f"{what} cannot be read as a log ({reason(error)}).") from error


def _read(source: Any, columns: Any, csv: CSV | None, ends: str | None) -> Raw:
    library = next((library for library in frameworks_of(source) if library in OBJECTS), None)
    if library == "datasets" and not hasattr(source, "with_format"):
        library = None  # a package of the user's own has that name too
    if ends is not None and library != BUFFERS:
        raise InputError("ends= is for rollout buffers of Stable-Baselines3: leave it out.")
    if isinstance(source, (str, os.PathLike)):
        return _from_path(source, columns, csv)
    if csv is not None:
        raise InputError("csv= is for CSV files: leave it out.")
    if library is not None:
        reader = importlib.import_module(f"gradientdice.data.datasets.{OBJECTS[library]}")
        return reader.read(source, columns, ends) if library == BUFFERS else reader.read(source, columns)
    if "polars" in frameworks_of(source) and hasattr(source, "collect"):
        source = source.collect()  # a frame that is not computed yet
    place = f"the {type(source).__name__}"
    if hasattr(source, "__arrow_c_stream__"):
        return tables.from_arrow_table(place, _arrow(place, source), columns)
    if isinstance(source, Mapping):
        return tables.from_mapping(place, source, columns)
    if "pandas" in frameworks_of(source) and hasattr(source, "to_frame"):  # older ones are not told apart by Arrow
        raise InputError(_single_column(place))
    if hasattr(source, "step") and hasattr(source, "reset"):
        raise InputError(f"{place} is an environment, not a log: gradientdice.Recorder records one while it runs.")
    raise InputError(
        f"gradientdice.load takes a file, a data frame, a mapping of arrays or a dataset, not {type(source).__name__}: "
        "make a data frame or Transitions of it."
    )


def _arrow(place: str, source: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.table(source)
    except (pa.ArrowInvalid, TypeError) as error:
        if hasattr(source, "columns") or hasattr(source, "schema"):
            raise
        raise InputError(_single_column(place)) from error


def _single_column(place: str) -> str:
    return f"{place} is a single column: give the data frame that it belongs to."


def _from_path(source: Any, columns: Any, csv: CSV | None) -> Raw:
    from gradientdice.data.datasets import minari, rllib

    path = as_path(source)
    if minari.is_dataset(path):
        return minari.read_path(path, columns)
    if is_folder(path) is False and kind_of(path) in HDF5:
        from gradientdice.data.datasets import hdf5

        return hdf5.read(path, columns)
    reader: Callable[..., Raw] = rllib.read if rllib.is_episodes(path) else tables.from_file
    return reader(path, columns, csv)
