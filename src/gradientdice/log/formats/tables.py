"""Tables of any kind as a log: files, data frames and mappings of arrays, by the names of their columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gradientdice.base.errors import InputError
from gradientdice.log.fields import ARRAYS, BOOKS, FLAGS, STEPS, as_field
from gradientdice.log.files import read_columns
from gradientdice.log.files.arrow_table import columns_of
from gradientdice.log.files.csv import CSV
from gradientdice.log.files.reading import filled, guarded, kind_of, require_readable
from gradientdice.log.files.text import settled, steps_of
from gradientdice.log.files.vectors import parts_of, side_by_side
from gradientdice.log.formats import labels
from gradientdice.log.formats.names import Naming, resolve
from gradientdice.log.formats.observations import joined
from gradientdice.log.formats.raw import Raw

if TYPE_CHECKING:
    import pyarrow as pa

# The fields whose numbers have names, and what holds these.
LABELLED = {"states": "state_columns", "actions": "action_columns"}
# column names by key -> arrays by key
Reader = Callable[[dict[str, str]], dict[str, np.ndarray]]


def from_file(path: Path, columns: Any, csv: CSV | None) -> Raw:
    """A file or folder with one row per transition, or with one row per episode."""
    from gradientdice.log.files import json_lines, parquet

    kind = ".parquet" if require_readable(path) else kind_of(path)
    if kind in json_lines.SUFFIXES:
        what = "a readable file of JSON lines"
        return from_arrow_table(str(path), guarded(path, what, lambda: json_lines.read_table(path)), columns)
    _, present = read_columns(path, {}, csv)
    naming = resolve(path, present, columns)
    types = guarded(path, "a readable Parquet file", lambda: parquet.types_of(path)) if kind == ".parquet" else {}
    if _is_list(types.get(str(naming.names["rewards"]))):
        return from_arrow_table(str(path), guarded(path, "Parquet", lambda: parquet.read_table(path)), columns)
    as_written = not naming.guessed and set(naming.names) <= set(ARRAYS) and "next_states" in naming.names
    # What is saved of a column does not hold for another that was named in its place.
    books = {name: name for name, field in BOOKS.items() if as_written and naming.names[field] == field}
    raw = _named(str(path), naming, lambda names: read_columns(path, names | books, csv)[0])
    raw.as_written = as_written
    raw.books |= _struct_labels(naming, types)
    if kind == ".parquet" and naming.names.get("episodes") in types:  # not a number in the names of folders
        raw.files = guarded(path, "a readable Parquet file", lambda: parquet.file_rows(path))
    raw.books |= {name: raw.columns.pop(name).tolist() for name in books if name in raw.columns}
    lost = [field for field in naming.names if field not in raw.columns and field != STEPS]
    if lost:
        raise InputError(f"{path}: the column of {lost[0]} went away while the file was read. Read it again.")
    return raw


def from_arrow_table(place: str, table: pa.Table, columns: Any) -> Raw:
    """An Arrow table; where the rewards are lists each row is an episode."""
    if not table.num_rows:
        raise InputError(f"{place} has no rows.")
    naming = resolve(place, table.column_names, columns)
    types = dict(zip(table.column_names, table.schema.types, strict=True))
    if _is_list(types.get(str(naming.names["rewards"]))):
        return _episodes(place, table, naming)
    raw = _named(place, naming, lambda names: filled(place, names, columns_of(place, table, names)))
    raw.books |= _struct_labels(naming, types)
    return raw


def _is_list(kind: pa.DataType | None) -> bool:
    import pyarrow as pa

    return kind is not None and (pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _struct_labels(naming: Naming, types: Mapping[str, pa.DataType]) -> dict[str, labels.Labels]:
    """The names of the parts, where a column holds dictionaries."""
    kinds = {book: types.get(str(naming.names[field])) for field, book in LABELLED.items()}
    return _known({book: labels.of_struct(kind) for book, kind in kinds.items() if kind is not None})


def from_mapping(place: str, mapping: Mapping[str, Any], columns: Any) -> Raw:
    """A mapping of arrays; dictionaries of observations are joined."""
    present = [str(name) for name in mapping]
    naming = resolve(place, present, columns)

    def read(names: dict[str, str]) -> dict[str, np.ndarray]:
        found = {}
        for key, name in names.items():
            arrays = [settled(place, key, part, joined(part, mapping[part])) for part in parts_of(place, name, present)]
            found[key] = arrays[0] if len(arrays) == 1 else side_by_side(arrays)
        return found

    raw = _named(place, naming, read)
    values = {book: mapping.get(str(naming.names[field])) for field, book in LABELLED.items()}
    raw.books |= _known({book: labels.of_value(value) for book, value in values.items()})
    return raw


def _named(place: str, naming: Naming, read: Reader) -> Raw:
    """The columns of each field; those of a field with several names side by side."""
    single = {field: name for field, name in naming.names.items() if isinstance(name, str)}
    columns = read(single)
    books = {}
    for field, chosen in naming.names.items():
        names = (chosen,) if isinstance(chosen, str) else chosen
        if isinstance(chosen, str):
            parts = [columns[field]] if field in columns else []
        else:
            keys = {f"{field}.{number}": name for number, name in enumerate(names)}
            found = read(keys)
            parts = [found[key] for key in keys]
            columns[field] = side_by_side(parts)
        if parts and (named := LABELLED.get(field)):
            books[named] = labels.of_columns(field, names, parts)
    order = _ordering(place, naming, columns)
    return Raw(place, columns, naming.notes, order=order, done=naming.done, books=_known(books))


def _ordering(place: str, naming: Naming, columns: dict[str, np.ndarray]) -> str | None:
    """The name of the column that orders the rows, read as numbers or times.

    Where next states are there, a column that only looks like steps is not needed, and left alone.
    """
    if STEPS not in columns:
        return None
    if "next_states" in columns and not naming.named_order:
        del columns[STEPS]
        return None
    name = naming.names[STEPS]
    columns[STEPS] = steps_of(place, name, columns[STEPS])
    if not naming.named_order and "episodes" in columns:
        _require_plausible(place, str(name), columns["episodes"], columns[STEPS])
    return str(name)


def _require_plausible(place: str, name: str, episodes: np.ndarray, steps: np.ndarray) -> None:
    """Raise if a column that only looks like steps contradicts the order of episodes that lie in one piece.

    Rows of many episodes that lie apart have lost their order, and a column that goes down everywhere is turned round.
    One that goes up and down within episodes may as well be a duration.
    """
    if len(steps) != len(episodes):
        return  # refused for its length
    inside = episodes[1:] == episodes[:-1]
    in_pieces = int((~inside).sum()) + 1 > len(np.unique(episodes))
    up, down = ((steps[1:] > steps[:-1])[inside], (steps[1:] < steps[:-1])[inside])
    if in_pieces or not up.any() or not down.any():
        return
    row = int(np.flatnonzero(inside)[np.argmax(down)]) + 1
    raise InputError(
        f"{place}: the column {name} may order the rows, but goes back in row {row}, within an episode. If it does, "
        f"say columns={{'steps': {name!r}}}, and rows are sorted by it; if not, columns={{'steps': None}}."
    )


def _known(books: dict[str, labels.Labels | None]) -> dict[str, labels.Labels]:
    return {name: book for name, book in books.items() if book is not None}


def _episodes(place: str, table: pa.Table, naming: Naming) -> Raw:
    """Rows that are whole episodes, as one row per step: each column holds a list over the steps.

    Observations may have one more entry than there are steps: what followed the last one.
    """
    names = {field: name for field, name in naming.names.items() if isinstance(name, str)}
    if "next_states" in names:
        raise InputError(
            f"{place} has one row per episode and next states too: name the columns without them, or write one row "
            "per transition."
        )
    found = {field: table[name].to_pylist() for field, name in names.items() if field != "episodes"}
    lengths = [len(rewards or ()) for rewards in found["rewards"]]
    columns: dict[str, np.ndarray] = {"episodes": np.repeat(np.arange(len(lengths)), lengths)}
    observed = [stacked(values) for values in found.pop("states")]
    states = [joined("observations", values) for values in observed]
    longer = {len(own) - length for own, length in zip(states, lengths, strict=True)}
    if longer not in ({0}, {1}):
        raise _unequal(place, names["states"], [len(own) for own in states], lengths)
    own_states = [own[:length] for own, length in zip(states, lengths, strict=True)]
    columns["states"] = settled(place, "states", names["states"], _in_one(place, "states", own_states))
    if longer == {1}:
        following = np.concatenate([own[1:] for own in states])
        columns["next_states"] = settled(place, "next_states", names["states"], following)
    for field, values in found.items():
        if not isinstance(next((value for value in values if value is not None), None), list):
            columns[field] = _of_whole_episodes(field, values, lengths)
            continue
        if [len(value or ()) for value in values] != lengths:
            raise _unequal(place, names[field], [len(value or ()) for value in values], lengths)
        parts = [joined(field, stacked(value)) for value in values]
        columns[field] = settled(place, field, names[field], _in_one(place, field, parts))
    order = _ordering(place, naming, columns)
    notes, books = [*naming.notes, "each row is an episode"], labels.state_books(observed[0])
    return Raw(place, columns, notes, order=order, done=naming.done, books=books)


def _in_one(place: str, field: str, parts: list[np.ndarray]) -> np.ndarray:
    """The steps of all episodes; an error if they differ in shape."""
    odd = next((number for number, part in enumerate(parts) if part.shape[1:] != parts[0].shape[1:]), None)
    if odd is not None:
        raise InputError(
            f"{place}: {field} of episode {odd} have the shape {parts[odd].shape[1:]}, those of the first "
            f"{parts[0].shape[1:]}."
        )
    return np.concatenate(parts)


def _unequal(place: str, column: str, own: list[int], lengths: list[int]) -> InputError:
    odd = next(k for k, (left, right) in enumerate(zip(own, lengths, strict=True)) if left != right)
    return InputError(
        f"{place}: {column} of episode {odd} has {own[odd]} entries for {lengths[odd]} rewards. Each list needs one "
        "entry per step; observations may have one more, in all episodes."
    )


def _of_whole_episodes(field: str, values: list[Any], lengths: list[int]) -> np.ndarray:
    """A value per episode at each of its steps; a flag at its last step."""
    array = np.array(values)
    if field not in FLAGS:
        return np.repeat(array, lengths)
    flags = np.zeros(sum(lengths), dtype=bool)
    flags[np.cumsum(lengths) - 1] = as_field(field, array)
    return flags


def stacked(values: Sequence[Any]) -> Any:
    """A list over steps as an array; one of dictionaries as a dictionary of arrays."""
    if values and isinstance(values[0], dict):
        return {key: stacked([value[key] for value in values]) for key in values[0]}
    return np.asarray(values)
