"""Words as codes with their code book, and names for the numbers of vectors.

Names that say no more than which field this is (`obs`, `states_0`) are not kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradientdice.base.arrays import as_numpy
from gradientdice.base.errors import InputError
from gradientdice.log.fields import are_words
from gradientdice.log.formats.names import HABITS

if TYPE_CHECKING:
    import pyarrow as pa


# No action and no state has a longer name; what does is packed data or prose.
LONGEST_WORD = 64


def code_book(name: str, *arrays: np.ndarray | None) -> tuple[str, ...] | None:
    """The words of all these columns in order; None if they hold no words.

    Words that are whole numbers are ordered as numbers, all others by the alphabet. An empty text is no word.
    """
    given = [array for array in arrays if array is not None]
    if not any(_holds_words(array) for array in given):
        return None
    for array in given:
        if not _holds_words(array):
            raise InputError(f"{name} has words in one column and numbers in another: write both as words.")
        if array.ndim != 1:
            raise InputError(
                f"{name} has words among its columns: make numbers of them first, for example one column of 0 and 1 "
                "per word (pandas.get_dummies)."
            )
    words = {str(word) for array in given for word in np.unique(_known(array).astype(str))} - {""}
    longest = max(words, key=len, default="")
    if len(longest) > LONGEST_WORD:
        raise InputError(
            f"{name} holds texts such as {longest[:30]!r}…, which are too long for names: they may be packed numbers. "
            "Unpack them, or make numbers of them (RLlib: output_compress_columns=[])."
        )
    if not words:
        raise InputError(f"{name} holds empty texts only.")
    lists = [word for word in words if word.strip()[:1] in ("[", "(", "{") and word.strip()[-1:] in ("]", ")", "}")]
    if lists:
        raise InputError(
            f"{name} holds lists that were written as text, such as {min(lists)!r:.40}: write one column per number "
            f"({name}_0, {name}_1, …), or save the log as Parquet."
        )
    if all(word.isdecimal() for word in words):
        return tuple(sorted(words, key=int))
    return tuple(sorted(words))


def coded(array: np.ndarray, book: tuple[str, ...]) -> np.ndarray:
    """The codes of words, masked where there is no word."""
    index = {word: code for code, word in enumerate(book)}
    hidden = np.ma.getmaskarray(array)
    words = ["" if missing else str(word) for word, missing in zip(np.ma.getdata(array), hidden, strict=True)]
    codes = np.array([index.get(word, -1) for word in words], dtype=np.int64)
    return np.ma.MaskedArray(codes, codes < 0) if (codes < 0).any() else codes


def _known(array: np.ndarray) -> np.ndarray:
    """The entries that are there."""
    return array.compressed() if isinstance(array, np.ma.MaskedArray) else array.ravel()


def _holds_words(array: np.ndarray) -> bool:
    known = _known(array)
    return bool(known.size) and are_words(known)


def listed(book: tuple[str, ...], most: int = 12) -> str:
    """The code book in a line."""
    shown = ", ".join(f"{code} = {word}" for code, word in enumerate(book[:most]))
    return shown if len(book) <= most else f"{shown}, … ({len(book)} in all)"


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
