"""A log as a reader found it, before next states are made and ends are told apart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradientdice.log.dropped import Dropped


@dataclass
class Raw:
    """Columns by field, of the shapes that the source has.

    Attributes:
        place: the source, for messages.
        columns: field -> array.
        notes: what was guessed or changed on the way here, in phrases.
        as_written: whether the names are all the library's own, in a file: it is then read as it stands, bit for bit.
        done: whether `terminated` may be true at time limits too.
        order: the column that orders the rows of an episode; None where none was found.
        episode_ends: "terminated" or "truncated", if the user said what the last rows of episodes are.
        one_step: whether the log was said to have no next states: without episodes and ends every row is one then.
        files: the files of a folder that each have episodes of their own numbering, and their rows; empty otherwise.
        rows: the number of each row in the source, where rows were sorted or dropped.
        dropped: what is known of rows that were dropped, if any were.
        books: words of codes and of columns: those of the source, and those that were saved with the log.
    """

    place: str
    columns: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    as_written: bool = False
    done: bool = False
    order: str | None = None
    episode_ends: str | None = None
    one_step: bool = False
    files: tuple[tuple[str, int], ...] = ()
    rows: np.ndarray | None = None
    dropped: Dropped | None = None
    books: dict[str, Any] = field(default_factory=dict)
