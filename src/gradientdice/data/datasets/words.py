"""Words as codes: the code book says which word has which code."""

from __future__ import annotations

import numpy as np

from gradientdice.data.fields import are_words
from gradientdice.errors import InputError

# No action and no state has a longer name; what does is packed data or prose.
LONGEST_WORD = 64


def code_book(name: str, *arrays: np.ndarray | None) -> tuple[str, ...] | None:
    """The words of all these columns in order; None if they hold no words.

    Words that are whole numbers are ordered as numbers, all others by the alphabet.
    """
    given = [array for array in arrays if array is not None]
    if not any(are_words(array) for array in given):
        return None
    for array in given:
        if not are_words(array):
            raise InputError(f"{name} has words in one column and numbers in another: write both as words.")
        if array.ndim != 1:
            raise InputError(
                f"{name} has words among its columns: make numbers of them first, for example one column of 0 and 1 "
                "per word (pandas.get_dummies)."
            )
    longest = max((str(word) for array in given for word in np.ma.getdata(array)), key=len)
    if len(longest) > LONGEST_WORD:
        raise InputError(
            f"{name} holds texts such as {longest[:30]!r}…, which are too long for names: they may be packed numbers. "
            "Unpack them, or make numbers of them (RLlib: output_compress_columns=[])."
        )
    words = {str(word) for array in given for word in np.unique(np.ma.getdata(array).astype(str))}
    if all(word.isdecimal() for word in words):
        return tuple(sorted(words, key=int))
    return tuple(sorted(words))


def coded(array: np.ndarray, book: tuple[str, ...]) -> np.ndarray:
    """The codes of words, masked where the words are."""
    index = {word: code for code, word in enumerate(book)}
    codes = np.array([index[str(word)] for word in np.ma.getdata(array).astype(str)], dtype=np.int64)
    return np.ma.MaskedArray(codes, array.mask) if isinstance(array, np.ma.MaskedArray) else codes


def listed(book: tuple[str, ...], most: int = 12) -> str:
    """The code book in a line."""
    shown = ", ".join(f"{code} = {word}" for code, word in enumerate(book[:most]))
    return shown if len(book) <= most else f"{shown}, … ({len(book)} in all)"
