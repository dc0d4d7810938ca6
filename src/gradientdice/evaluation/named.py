"""Which policy refused input is about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gradientdice.base.errors import InputError


@contextmanager
def named(name: str) -> Iterator[None]:
    """Says of refused input which policy it is about; nothing for one without a name."""
    try:
        yield
    except InputError as error:
        if not name:
            raise
        raise InputError(f"Policy {name!r}: {error}") from error
