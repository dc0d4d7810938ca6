"""Opening a log: from files, an Arrow dataset or a table to parts, with what all of them must have."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gradientdice.base.errors import InputError
from gradientdice.log.fields import BOOKS
from gradientdice.log.files import checksums
from gradientdice.log.files.parquet import code_book, dataset_of, opened, require_in_all
from gradientdice.log.files.reading import as_path, guarded, require_readable
from gradientdice.log.scanning.parts import PART_ROWS, ArrowPart, Part, version_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.dataset import Dataset, Expression, Fragment


class Opened(NamedTuple):
    """A log's parts, the names of its columns, the words that it has for codes and columns, and what to call it."""

    parts: tuple[Part, ...]
    present: list[str]
    books: dict[str, tuple[str, ...]]
    place: str


def open_arrow(source: Any, chosen: Expression | None, wanted: Collection[str]) -> Opened:
    """The parts of a file, a folder, a dataset or a table.

    Args:
        source: the log.
        chosen: which rows are part of it; None is all.
        wanted: the columns that are read where they are there: then every file must have them.
    """
    place, dataset = _as_dataset(source)
    _require_expression(chosen)
    return guarded(Path(place), "a readable dataset", lambda: _parts(place, dataset, chosen, wanted))


def _as_dataset(source: Any) -> tuple[str, Dataset]:
    """A dataset, and what to call it."""
    import pyarrow as pa
    from pyarrow import dataset

    if isinstance(source, dataset.Dataset):
        return "the dataset", source
    if isinstance(source, pa.Table):
        return "the table", dataset.dataset(source)
    if not isinstance(source, (str, os.PathLike)):
        raise InputError(
            "source must be a Parquet file, a folder of them, a pyarrow dataset or table, or a Dask frame, not "
            f"{type(source).__name__}."
        )
    place = as_path(source)
    folder = require_readable(place)
    if not folder and place.suffix != ".parquet":
        raise InputError(
            f"{place}: scan reads Parquet. Load the log and save it as .parquet, or give a pyarrow dataset of it."
        )
    return str(place), guarded(place, "a readable Parquet file or folder", lambda: dataset_of(place))


def _require_expression(chosen: object) -> None:
    """An error unless this is a filter, or None."""
    from pyarrow import dataset

    if chosen is not None and not isinstance(chosen, dataset.Expression):
        raise InputError(
            "filter must be an expression of pyarrow.dataset.field, such as field('day') >= 200, not "
            f"{type(chosen).__name__}."
        )


def _parts(place: str, dataset: Dataset, chosen: Expression | None, wanted: Collection[str]) -> Opened:
    for name in wanted:
        if dataset.schema.names.count(name) > 1:
            raise InputError(f"{place} has two columns named {name!r}: rename or drop one of them.")
    _require_fitting(place, dataset, chosen)
    fragments = opened(list(dataset.get_fragments(filter=chosen)))
    schema = _schema(place, dataset, fragments, wanted)
    parts: list[Part] = []
    for number, fragment in enumerate(fragments):
        path = getattr(fragment, "path", "")
        name = path or f"fragment {number} of the dataset"
        checksums.require_names(Path(name), fragment)
        version, pieces = version_of(path), list(_pieces(fragment, chosen, schema))
        # A checksum is that of a whole column, of the type that it has in the file.
        whole = len(pieces) == 1 and chosen is None and path
        types = fragment.physical_schema
        known = checksums.known_sums(fragment) if whole else {}
        sums = {column: known[column] for column in known if schema.field(column).type == types.field(column).type}
        for piece, groups in pieces:
            parts.append(ArrowPart(piece, schema, chosen, f"{name}{groups}", version, sums))
    books = {name: code_book(place, fragments, name) for name in BOOKS} if fragments else {}
    return Opened(
        tuple(parts), schema.names, {name: tuple(book) for name, book in books.items() if book is not None}, place
    )


def _require_fitting(place: str, dataset: Dataset, chosen: Expression | None) -> None:
    """An error if the filter names a column that is not there, or compares it with what it cannot be."""
    import pyarrow as pa

    try:
        if chosen is not None:
            dataset.schema.empty_table().filter(chosen)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        reason, names = str(error).splitlines()[0], ", ".join(dataset.schema.names)
        raise InputError(f"filter does not fit {place}, whose columns are {names:.150}: {reason:.150}.") from error


def _schema(place: str, dataset: Dataset, fragments: list[Fragment], wanted: Collection[str]) -> pa.Schema:
    """The columns of all files. Files may differ in the width of their numbers: the wider type holds for all."""
    import pyarrow as pa

    if not fragments:
        return dataset.schema
    physical = [part.physical_schema for part in fragments]
    for name in wanted:
        if any(name in schema.names for schema in physical):
            require_in_all(place, fragments, name)
    schema = pa.unify_schemas(physical, promote_options="permissive")
    for name in dataset.schema.names:  # columns that the folders' names give
        if name not in schema.names:
            schema = schema.append(dataset.schema.field(name))
    return schema


def _pieces(fragment: Any, chosen: Expression | None, schema: pa.Schema) -> Iterator[tuple[Any, str]]:
    """A file in pieces of some row groups each, and which they are."""
    if not hasattr(fragment, "split_by_row_group"):
        yield fragment, ""
        return
    waiting, rows = [], 0
    # The schema of the whole log: a filter may name columns that only the folders' names give.
    for one in fragment.split_by_row_group(chosen, schema):
        group = one.row_groups[0]
        if not group.num_rows:
            continue
        if waiting and rows + group.num_rows > PART_ROWS:
            yield fragment.subset(row_group_ids=waiting), f" row groups {waiting[0]} to {waiting[-1]}"
            waiting, rows = [], 0
        waiting.append(group.id)
        rows += group.num_rows
    if waiting:
        yield fragment.subset(row_group_ids=waiting), f" row groups {waiting[0]} to {waiting[-1]}"
