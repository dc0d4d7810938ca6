"""Episodes in several files: the same number in two files is two episodes, unless the rows show that it is one."""

from __future__ import annotations

import numpy as np

from gradientdice.base.errors import InputError
from gradientdice.log.fields import STEPS, as_field
from gradientdice.log.formats.raw import Raw

PER_FILE, ACROSS_FILES = "per file", "across files"


def number_files(raw: Raw, how: str | None) -> None:
    """Give the episodes of each file numbers of their own if that was said; refuse files that share numbers.

    Args:
        raw: the log, the rows of one file after those of another.
        how: "per file", "across files", or None if nothing was said.
    """
    if "episodes" not in raw.columns or len(raw.files) < 2:
        if how is not None:
            raise InputError(
                f"{raw.place}: episodes={how!r} is for a folder of several Parquet files with a column of episodes. "
                "Leave it out."
            )
        return
    if how == ACROSS_FILES:
        return
    _, episode = np.unique(np.ma.getdata(raw.columns["episodes"]).astype(str), return_inverse=True)
    rows = [count for _, count in raw.files]
    file = np.repeat(np.arange(len(rows)), rows)
    if how == PER_FILE:
        _, raw.columns["episodes"] = np.unique(file * (episode.max() + 1) + episode, return_inverse=True)
        raw.as_written = False
        raw.notes.append("each file has episodes of its own, as episodes='per file' says")
        return
    files_of = np.unique(np.column_stack([episode, file]), axis=0)
    for at in np.flatnonzero(files_of[1:, 0] == files_of[:-1, 0]):
        shared, first, second = files_of[at, 0], *files_of[at : at + 2, 1]
        before = int(np.flatnonzero(file == first)[-1])
        if second != first + 1 or not _goes_on(raw, episode, shared, before):
            row = int(np.flatnonzero((episode == shared) & (file == second))[0])
            raise shared_number(
                raw.place, np.ma.getdata(raw.columns["episodes"])[row], raw.files[first][0], raw.files[second][0]
            )


def shared_number(place: str, episode: object, first: str, second: str) -> InputError:
    """The refusal of two files with an episode of the same number."""
    return InputError(
        f"{place}: the files {first} and {second} both have an episode {episode!s:.40}. If each file numbers its "
        'episodes anew, say episodes="per file"; if episodes go on from file to file, episodes="across files".'
    )


def _goes_on(raw: Raw, episode: np.ndarray, shared: int, before: int) -> bool:
    """Whether the last row of a file and the first of the next are two steps of this episode, one after the other."""
    pair = [before, before + 1]
    columns = raw.columns
    if (episode[pair] != shared).any():
        return False
    if "terminated" in columns and as_field("terminated", np.ma.getdata(columns["terminated"])[[before]])[0]:
        return False
    if "next_states" in columns:
        following, states = (np.ma.getdata(columns[name]) for name in ("next_states", "states"))
        return bool(np.all(following[before] == states[before + 1]))
    return STEPS in columns and bool(columns[STEPS][before] < columns[STEPS][before + 1])
