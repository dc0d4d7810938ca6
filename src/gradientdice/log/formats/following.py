"""Episodes of several files, the order of rows, and next states where a log has none.

The same number in two files is two episodes, unless the rows show that it is one. The next state of a row is the state
of the next row of the same episode, never of another one.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int

from gradientdice.base.errors import InputError
from gradientdice.log.dropped import dropped_rows
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


Flags = Bool[np.ndarray, " n"]
Rows = Int[np.ndarray, " n"]


def with_next_states(raw: Raw) -> Raw:
    """The log with the next states that its own rows give.

    The last row of an episode that ended needs none. That of an episode cut by a time limit, or by the end of the log,
    has none that is known: it is dropped. Where it was marked as a time limit, the row before it is then cut by it.
    """
    row = in_order(raw)
    mark_last_rows(raw)
    columns = raw.columns
    states = columns["states"]
    ended, cut = _flag(columns, "terminated", len(states)), _flag(columns, "truncated", len(states))
    if "episodes" not in columns:
        if not (ended | cut).any() and raw.one_step:
            columns.pop(STEPS, None)
            raw.columns, raw.notes = (
                columns | {"next_states": None},
                [*raw.notes, "every row is an episode of one step"],
            )
            return raw
        if not (ended | cut).any():
            raise InputError(
                f"{raw.place} lacks the field 'next_states', and has neither episodes nor ends, so that no row's next "
                "is known. Say which columns they are: columns={'next_states': '…'} or {'episodes': '…'}. A bandit "
                "log has none: columns={'next_states': None}, or --column next_states= on the command line."
            )
        columns["episodes"] = numbered(ended | cut)
        _require_increasing(raw, row)
        raw.notes.append("episodes were told apart by their ends")
    episodes = columns["episodes"]
    inside = np.append(episodes[1:] == episodes[:-1], False)
    require_ends_last(raw.place, inside & ended, episodes, row)
    last = ~inside | cut
    keep = ended | ~last
    following = np.concatenate([states[1:], states[-1:]])
    following[ended] = states[ended]
    # The row before one that was cut is followed by a state that was seen, and then by nothing.
    before_cut = np.append(~keep[1:] & cut[1:], False) & keep & ~ended & inside
    kept = {name: array[keep] for name, array in columns.items() if len(array) == len(keep) and name != STEPS}
    kept |= {"next_states": following[keep], "terminated": ended[keep], "truncated": before_cut[keep]}
    if "initial_states" in columns:
        kept["initial_states"] = columns["initial_states"]
    if not keep.any():
        raise InputError(f"{raw.place}: no row has a next state or an end. Give next_states.")
    by = "the order of the file" if raw.order is None else f"the order of {raw.order!r}"
    notes = [f"next states were made from the next row of the same episode, in {by}"]
    if not keep.all():
        notes.append(
            f"{int((~keep).sum()):,} rows at time limits or at the end of the log were dropped: what followed them is "
            "not in the log"
        )
        raw.dropped, raw.rows = dropped_rows(columns, keep), row[keep]
    raw.columns, raw.notes = kept, [*raw.notes, *notes]
    return raw


def mark_last_rows(raw: Raw) -> None:
    """Take the last row of each episode for its end, or for a time limit, if the user said so."""
    if raw.episode_ends is None:
        return
    if "episodes" not in raw.columns:
        raise InputError(
            f"{raw.place}: episode_ends={raw.episode_ends!r} needs to know the episodes. Say which column they are: "
            "columns={'episodes': '…'}."
        )
    episodes, rows = raw.columns["episodes"], len(raw.columns["states"])
    _, from_end = np.unique(episodes[::-1], return_index=True)
    last = np.zeros(rows, dtype=bool)
    last[rows - 1 - from_end] = True
    other = "truncated" if raw.episode_ends == "terminated" else "terminated"
    own = _flag(raw.columns, raw.episode_ends, rows)
    marked = last & ~own & ~_flag(raw.columns, other, rows)
    raw.columns[raw.episode_ends] = own | marked
    what = "ends" if raw.episode_ends == "terminated" else "time limits"
    raw.notes.append(f"{int(marked.sum()):,} last rows of episodes were taken for {what}, as episode_ends says")


def numbered(over: Flags) -> np.ndarray:
    """Episodes in rows that follow each other: a new one begins after each end."""
    return np.concatenate([[0], np.cumsum(over[:-1])])


def in_order(raw: Raw) -> Rows:
    """Bring the rows of each episode together, in the order of their steps if the log has them.

    Returns:
        (n,) each row's number in the source.
    """
    columns = raw.columns
    given = np.arange(len(columns["states"]))
    if "episodes" not in columns:
        return given
    _, first, episode = np.unique(columns["episodes"], return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))[episode]  # in the order in which they first appear
    steps = columns.get(STEPS, given)
    order = np.lexsort((steps, rank))
    _require_once(raw, columns["episodes"][order], steps[order])
    if (order == given).all():
        return given
    if STEPS in columns:
        raw.notes.append(f"rows were sorted by episode and {raw.order}")
    else:
        raw.notes.append("the rows of each episode were brought together, in the order of the file")
    raw.columns = {name: array if name == "initial_states" else array[order] for name, array in columns.items()}
    raw.rows = order
    return order


def require_ends_last(place: str, before_more: Flags, episodes: np.ndarray, row: Rows) -> None:
    """Raise if an episode goes on after its end.

    Args:
        place: the source, for messages.
        before_more: (n,) the rows that end their episode and are followed by another row of it.
        episodes: (n,) the episode of each row.
        row: (n,) each row's number in the source.
    """
    if before_more.any():
        at = int(np.argmax(before_more))
        raise InputError(
            f"{place}: episode {episodes[at]} ends in row {row[at]} and goes on in row {row[at + 1]}. Give every "
            "episode a number of its own, or name the column that marks ends: columns={'terminated': '…'}."
        )


def _require_once(raw: Raw, episodes: np.ndarray, steps: np.ndarray) -> None:
    """Raise if an episode has a step twice: its number then stands for several episodes."""
    twice = (episodes[1:] == episodes[:-1]) & (steps[1:] == steps[:-1])
    if twice.any():
        row = int(np.argmax(twice))
        raise InputError(
            f"{raw.place}: episode {episodes[row]} has {raw.order} {steps[row]} twice, so that its rows cannot be "
            "ordered. Give every episode a number of its own, or name a column that orders them: columns={'steps': "
            "'…'}, or None for the order of the file."
        )


def _require_increasing(raw: Raw, row: Rows) -> None:
    """Raise if rows that follow each other between two ends go back in time."""
    steps = raw.columns.pop(STEPS, None)
    if steps is None:
        return
    episodes = raw.columns["episodes"]
    back = (episodes[1:] == episodes[:-1]) & (steps[1:] <= steps[:-1])
    if back.any():
        at = int(np.argmax(back)) + 1
        raise InputError(
            f"{raw.place}: {raw.order} goes from {steps[at - 1]} to {steps[at]} in row {row[at]}, before an end. Name "
            "the column of episodes (columns={'episodes': '…'}) or of time limits ('truncated'), or say "
            "columns={'steps': None} if the rows are in order."
        )


def _flag(columns: dict[str, np.ndarray], name: str, rows: int) -> Flags:
    return columns[name].astype(bool) if name in columns else np.zeros(rows, dtype=bool)
