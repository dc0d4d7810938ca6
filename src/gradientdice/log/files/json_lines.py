"""JSON lines: one object per line, packed by gzip or not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gradientdice.log.files.arrow_table import columns_of
from gradientdice.log.files.reading import Found

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = (".jsonl", ".ndjson")
# The parser needs one object whole within a block; an object may be an episode.
BLOCK_BYTES = 1 << 26


def read(path: Path, names: dict[str, str]) -> Found:
    """The columns of these names."""
    table = read_table(path)
    return columns_of(path, table, names), table.column_names


def read_table(path: Path) -> pa.Table:
    """The whole file."""
    import pyarrow as pa
    from pyarrow import json

    compression = "gzip" if path.suffix == ".gz" else None
    with pa.input_stream(str(path), compression=compression) as stream:
        return json.read_json(stream, read_options=json.ReadOptions(block_size=BLOCK_BYTES))
