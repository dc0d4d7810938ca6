"""What the numbers of a state or an action are called, in the words of the source.

Names that say no more than which field this is (`obs`, `states_0`) are not kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradientdice.log.formats.names import HABITS
from gradientdice.log.formats.observations import as_numpy

if TYPE_CHECKING:
    import pyarrow as pa

Labels = tuple[str, ...]


def of_columns(field: str, names: Sequence[str], arrays: Sequence[np.ndarray]) -> Labels | None:
    """Those of columns side by side, each a number per row or a vector; None for one column with a usual name."""
    if len(names) == 1 and names[0].lower() in HABITS[field]:
        return None
    labels = [label for name, array in zip(names, arrays, strict=True) for label in _numbered(name, _width(array))]
    return _if_different(labels)


def of_value(value: Any) -> Labels | None:
    """Those of a dictionary's parts, in the order in which they are joined; None for anything else."""
    return _if_different(list(_parts(value, ""))) if isinstance(value, Mapping) else None


def state_books(observations: Any) -> dict[str, Labels]:
    """The names of the parts where observations are dictionaries, as `Raw` has them."""
    found = of_value(observations)
    return {} if found is None else {"state_columns": found}


def of_struct(kind: pa.DataType) -> Labels | None:
    """The same of an Arrow column of dictionaries; None where a part's length is not known from its type."""
    import pyarrow as pa

    if not pa.types.is_struct(kind):
        return None
    labels: list[str] = []
    for part in sorted(kind, key=lambda part: part.name):
        if pa.types.is_nested(part.type) and not pa.types.is_fixed_size_list(part.type):
            return None
        labels += _numbered(part.name, part.type.list_size if pa.types.is_fixed_size_list(part.type) else 1)
    return _if_different(labels)


def _parts(value: Any, name: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key in sorted(value, key=str):
            yield from _parts(value[key], f"{name}.{key}" if name else str(key))
    else:
        yield from _numbered(name, _width(np.asarray(as_numpy(value))))


def _numbered(name: str, width: int) -> list[str]:
    return [name] if width == 1 else [f"{name}_{number}" for number in range(width)]


def _width(array: np.ndarray) -> int:
    return int(np.prod(array.shape[1:]))


def _if_different(labels: list[str]) -> Labels | None:
    """Names that are not all different would mislead."""
    return tuple(labels) if len(set(labels)) == len(labels) else None
