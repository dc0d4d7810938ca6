"""Tables of Hugging Face's `datasets`, with one row per step or per episode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradientdice.base.errors import InputError
from gradientdice.log.formats import tables
from gradientdice.log.formats.raw import Raw


def read(source: Any, columns: Any) -> Raw:
    """A table; one of its splits has to be chosen before."""
    if isinstance(source, Mapping):
        raise InputError(f"a DatasetDict has the splits {sorted(source)}: choose one, for example dataset['train'].")
    if not hasattr(source, "__len__"):
        raise InputError(f"a {type(source).__name__} is read as it goes: load it without streaming.")
    return tables.from_arrow_table("the datasets table", source.with_format("arrow")[:], columns)
