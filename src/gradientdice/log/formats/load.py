"""`load`: a log from a file, a data frame, a mapping of arrays, or another library's own object."""

from __future__ import annotations

import datetime
import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gradientdice.base.errors import InputError, require_choice
from gradientdice.base.extras import frameworks_of
from gradientdice.log.files.csv import CSV
from gradientdice.log.files.reading import as_path, is_folder, kind_of, reason
from gradientdice.log.formats import tables
from gradientdice.log.formats.complete import complete
from gradientdice.log.formats.following import ACROSS_FILES, PER_FILE, number_files
from gradientdice.log.formats.names import checked
from gradientdice.log.formats.raw import Raw
from gradientdice.log.transitions import Transitions

# The library of an object -> the module here that reads it; none is imported before it is needed.
OBJECTS = {"minari": "minari", "d3rlpy": "d3rlpy", "stable_baselines3": "sb3", "datasets": "hugging_face"}
BUFFERS = "stable_baselines3"
HDF5 = (".h5", ".hdf5")
# Columns of objects in which pandas finds several types, or times that may have several zones.
MIXED = ("mixed", "mixed-integer", "mixed-integer-float", "datetime", "date")
PLAIN = (str, int, float, np.number, datetime.date)


def load(
    source: str | Path | Mapping[str, Any] | Any,
    *,
    columns: Mapping[str, str | Sequence[str] | None] | None = None,
    csv: CSV | None = None,
    episode_ends: str | None = None,
    episodes: str | None = None,
) -> Transitions:
    """Reads a log, from a file or from an object in memory.

    Columns are found by the names that are usual for them (`obs`, `next_obs`, `action`, `reward`, `done`, `timeout`,
    `episode_id` and others); the log's `notes` say what was guessed. Next states that are not stored are made from the
    next row of the same episode, in the order of a column of steps or dates (`step`, `t`, `date`, `timestamp` and
    others, or columns={"steps": "…"}), else in the order of the rows. Words among actions or states become codes, with
    `action_names` and `state_names`; numbers that are written as text are numbers.

    Args:
        source: a .npz, .parquet (file or folder), .csv, .jsonl or .h5 file, also packed by gzip where it is text; the
            folder or name of a Minari dataset; a data frame of any library with Arrow's stream interface; a mapping of
            arrays; a table of `datasets`; a dataset of Minari or d3rlpy; a buffer of Stable-Baselines3.
        columns: field -> the name it has there, several names whose columns are joined to a vector, or None for a field
            that the log does not have, whatever a column is called. Of a log of bandits, whose rows have no order,
            say so of `next_states`, and of `episodes` if a column looks like them: every row is then an episode of one
            step.
        csv: how a CSV file is written, if not in the usual way.
        episode_ends: "terminated" or "truncated": what the last row of an episode is, where no column says so. A
            truncated one is dropped where next states are made, since nothing is known of what followed it.
        episodes: of a folder of files, "per file" where each file numbers its episodes anew, or "across files" where
            an episode goes on from one file to another. Left out, files that share numbers are refused.

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
    if episode_ends is not None:
        require_choice("episode_ends", episode_ends, "terminated", "truncated")
    if episodes is not None:
        require_choice("episodes", episodes, PER_FILE, ACROSS_FILES)
    try:
        raw = _read(source, columns, csv, episode_ends)
        if BUFFERS not in frameworks_of(source):  # a rollout buffer has said by now how its episodes ended
            raw.episode_ends = episode_ends
        number_files(raw, episodes)
        raw.one_step = "next_states" in checked(columns)[1]
        return complete(raw)
    except InputError:
        raise
    except Exception as error:  # an object of another library fails in any way
        what = source if isinstance(source, (str, os.PathLike)) else f"the {type(source).__name__}"
        raise InputError(f"{what} cannot be read as a log ({reason(error)}).") from error


def _read(source: Any, columns: Any, csv: CSV | None, episode_ends: str | None) -> Raw:
    library = next((library for library in frameworks_of(source) if library in OBJECTS), None)
    if library == "datasets" and not hasattr(source, "with_format"):
        library = None  # a package of the user's own has that name too
    if isinstance(source, (str, os.PathLike)):
        return _from_path(source, columns, csv)
    if csv is not None:
        raise InputError("csv= is for CSV files: leave it out.")
    if library is not None:
        reader = importlib.import_module(f"gradientdice.log.formats.{OBJECTS[library]}")
        if library == BUFFERS:
            return reader.read(source, columns, episode_ends)
        return reader.read(source, columns)
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

    if "pandas" in frameworks_of(source) and hasattr(source, "dtypes"):
        source = _with_plain_objects(source)
    try:
        return pa.table(source)
    except (pa.ArrowInvalid, TypeError) as error:
        if hasattr(source, "columns") or hasattr(source, "schema"):
            raise
        raise InputError(_single_column(place)) from error


def _with_plain_objects(frame: Any) -> Any:
    """A pandas frame whose columns of several types are text: a cell that does not fit is then named.

    Times of Python keep their zones as text; Arrow would write all of them in one.
    """
    from pandas.api.types import infer_dtype

    if not hasattr(frame, "columns"):
        return frame
    changed = {}
    for name, kind in zip(frame.columns, frame.dtypes, strict=True):
        if kind != np.dtype(object) or infer_dtype(frame[name], skipna=True) not in MIXED:
            continue
        cells = frame[name]
        if all(isinstance(cell, PLAIN) for cell in cells.dropna()):
            changed[name] = [None if gone else _written(cell) for cell, gone in zip(cells, cells.isna(), strict=True)]
    return frame.assign(**changed) if changed and all(isinstance(name, str) for name in changed) else frame


def _written(cell: Any) -> str:
    return cell.isoformat() if hasattr(cell, "isoformat") else str(cell)


def _single_column(place: str) -> str:
    return f"{place} is a single column: give the data frame that it belongs to."


def _from_path(source: Any, columns: Any, csv: CSV | None) -> Raw:
    from gradientdice.log.formats import minari, rllib

    path = as_path(source)
    if minari.is_dataset(path):
        return minari.read_path(path, columns)
    if is_folder(path) is False and kind_of(path) in HDF5:
        from gradientdice.log.formats import hdf5

        return hdf5.read(path, columns)
    reader: Callable[..., Raw] = rllib.read if rllib.is_episodes(path) else tables.from_file
    return reader(path, columns, csv)
