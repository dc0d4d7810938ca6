"""RLlib's episodes in Parquet files, as it records them with `output_write_episodes=True`.

Each row is an episode, or a fragment of one, packed by msgpack. Fragments are joined by the episode's name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gradientdice.base.errors import InputError
from gradientdice.base.extras import optional
from gradientdice.log.files import parquet
from gradientdice.log.files.csv import CSV
from gradientdice.log.files.reading import guarded, is_folder, kind_of, require_readable
from gradientdice.log.formats.episodes import Episode, from_episodes
from gradientdice.log.formats.raw import Raw
from gradientdice.log.formats.tables import stacked

# The one column of such files.
COLUMN = "item"
LOG_PROBS = "action_logp"


def is_episodes(path: Path) -> bool:
    """Whether this is a Parquet file, or a folder of them, with packed episodes."""
    folder = is_folder(path)
    if folder is None or not (folder or kind_of(path) == ".parquet"):
        return False
    import pyarrow as pa

    try:
        require_readable(path)
        schema = parquet.fragments_of(path)[0].physical_schema
        kind = schema.field(COLUMN).type if schema.names == [COLUMN] else None
    except Exception:  # whatever is wrong with the file is said by those who read it
        return False
    return kind is not None and (pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def read(path: Path, columns: Any, csv: CSV | None) -> Raw:
    """The steps of all episodes."""
    if columns or csv is not None:
        raise InputError(f"{path} has RLlib's episodes, whose names are known: leave columns and csv out.")
    msgpack = optional("msgpack", "rllib")

    def content() -> Raw:
        packed = parquet.read_table(path)[COLUMN].to_pylist()
        return from_episodes(str(path), _episodes([_unpacked(msgpack, item) for item in packed]))

    return guarded(path, "a readable file of RLlib's episodes", content)


def _unpacked(msgpack: Any, item: bytes) -> dict[str, Any]:
    return msgpack.unpackb(item, object_hook=_array, strict_map_key=False)


def _array(value: dict[Any, Any]) -> Any:
    """An array or number of NumPy as `msgpack_numpy` packs it; packed Python objects are never read."""
    if b"nd" not in value:
        return value
    kind = value[b"type"]
    if value.get(b"kind") in (b"O", b"V") or not isinstance(kind, (str, bytes)):
        raise InputError("an array holds Python objects, which are never read.")
    numbers = np.frombuffer(value[b"data"], dtype=np.dtype(kind if isinstance(kind, str) else kind.decode()))
    return numbers.reshape(value[b"shape"]) if value[b"nd"] else numbers[0]


def _episodes(states: list[dict[str, Any]]) -> Iterator[Episode]:
    """Whole episodes: fragments of one follow each other, the last says how it ended."""
    fragments: dict[tuple[Any, Any], list[dict[str, Any]]] = defaultdict(list)
    for state in states:
        fragments[state["id_"], state.get("agent_id")].append(state)
    for parts in fragments.values():
        run: list[dict[str, Any]] = []
        for part in sorted(parts, key=lambda part: part["t_started"]):
            if run and run[-1]["t"] != part["t_started"]:  # a fragment is missing between these
                yield _joined(run)
                run = []
            run.append(part)
        yield _joined(run)


def _joined(parts: list[dict[str, Any]]) -> Episode:
    names = ("actions", "rewards")
    columns = {name: np.concatenate([_own(part[name]) for part in parts]) for name in names}
    observations = [_own(part["observations"]) for part in parts]
    # Each fragment begins with the observation that the one before it ends with.
    together = _concatenated([*(_without_last(part) for part in observations[:-1]), observations[-1]])
    outputs = [(part.get("extra_model_outputs") or {}).get(LOG_PROBS) for part in parts]
    given = [_own(output) for output in outputs if output is not None]
    log_probs = np.concatenate(given) if len(given) == len(parts) else None
    return Episode(together, columns["actions"], columns["rewards"], parts[-1]["is_terminated"], log_probs)


def _own(buffer: dict[str, Any]) -> Any:
    """What a buffer holds, without the steps before the fragment that it looks back on."""
    data, lookback = buffer["data"], buffer["lookback"]
    return _cut(stacked(data) if isinstance(data, list) else data, slice(lookback, None))


def _without_last(values: Any) -> Any:
    return _cut(values, slice(None, -1))


def _cut(values: Any, rows: slice) -> Any:
    return {name: _cut(part, rows) for name, part in values.items()} if isinstance(values, dict) else values[rows]


def _concatenated(parts: list[Any]) -> Any:
    if isinstance(parts[0], dict):
        return {name: _concatenated([part[name] for part in parts]) for name in parts[0]}
    return np.concatenate(parts)
