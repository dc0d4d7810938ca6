"""Words as codes: the code book says which word has which code."""

from __future__ import annotations

import numpy as np

from gradientdice.base.errors import InputError
from gradientdice.log.fields import are_words

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
