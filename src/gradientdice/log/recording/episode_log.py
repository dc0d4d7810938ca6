"""A log that grows by whole episodes: a folder of Parquet files, each of which is there whole or not at all."""

from __future__ import annotations

import time
from collections import defaultdict
from pathlib import Path
from typing import IO, Any

import numpy as np

from gradientdice.base.atomic import make_folder, write_atomically
from gradientdice.base.errors import InputError, require_count
from gradientdice.log.files import parquet
from gradientdice.log.formats.load import load

ROWS_PER_PART = 10_000
# After so long the episodes that are over are written, whatever their number: a kill loses no more.
SECONDS_PER_PART = 30.0
LOG_PROBS = "behavior_log_probs"


class EpisodeLog:
    """Writes episodes as they end."""

    def __init__(self, folder: Path, rows_per_part: int = ROWS_PER_PART) -> None:
        self.folder, self.rows_per_part = make_folder(folder), require_count("rows_per_part", rows_per_part)
        self._lock = _locked(self.folder)
        parts = sorted(self.folder.glob("part-*.parquet"))
        self._part = 1 + int(parts[-1].stem.partition("-")[2]) if parts else 0
        before = load(parts[-1]) if parts else None
        self._episode = 0 if before is None or before.episodes is None else 1 + int(before.episodes.max())
        self._with_log_probs = None if before is None else before.behavior_log_probs is not None
        self._waiting: dict[str, list[np.ndarray]] = defaultdict(list)
        self._rows, self._written = 0, time.monotonic()

    def add(self, columns: dict[str, np.ndarray]) -> None:
        """An episode that is over, with its rows in order."""
        with_log_probs = LOG_PROBS in columns
        if self._with_log_probs not in (None, with_log_probs):
            raise InputError("log_prob must be given for every step of a log, or for none.")
        self._with_log_probs = with_log_probs
        rows = len(columns["rewards"])
        for name, array in columns.items():
            self._waiting[name].append(array)
        self._waiting["episodes"].append(np.full(rows, self._episode))
        self._episode += 1
        self._rows += rows
        if self._rows >= self.rows_per_part or time.monotonic() - self._written > SECONDS_PER_PART:
            self.flush()

    def flush(self) -> None:
        """Writes the episodes that are over."""
        if not self._rows:
            return
        columns = {name: np.concatenate(parts) for name, parts in self._waiting.items()}
        path = self.folder / f"part-{self._part:06d}.parquet"
        write_atomically(path, lambda target: parquet.write(columns, target, {}))
        self._waiting.clear()
        self._part, self._rows, self._written = self._part + 1, 0, time.monotonic()

    def close(self) -> None:
        """Writes what is left, and lets others record into the folder."""
        try:
            self.flush()
        finally:
            if self._lock is not None:
                self._lock.close()
                self._lock = None


class Trace:
    """The steps of an episode that is not over."""

    def __init__(self) -> None:
        self.state: np.ndarray | None = None
        self._rows: dict[str, list[Any]] = defaultdict(list)

    def begin(self, state: np.ndarray) -> None:
        """The episode begins here."""
        self.state = state

    def step(self, action: np.ndarray, reward: float, following: np.ndarray, log_prob: float | None) -> None:
        """One more step."""
        assert self.state is not None
        row = {"states": self.state, "actions": action, "rewards": float(reward), "next_states": following}
        if log_prob is not None:
            row[LOG_PROBS] = float(log_prob)
        if self._rows and (LOG_PROBS in self._rows) != (LOG_PROBS in row):
            raise InputError("log_prob must be given for every step of a log, or for none.")
        for name, value in row.items():
            self._rows[name].append(value)
        self.state = following

    def end(self, log: EpisodeLog, terminated: bool) -> None:
        """The episode is over, by its end or because it was cut; it goes to the log."""
        if self._rows:
            columns = {name: np.array(values) for name, values in self._rows.items()}
            last = np.arange(len(columns["rewards"])) == len(columns["rewards"]) - 1
            log.add({**columns, "terminated": last & terminated, "truncated": last & (not terminated)})
        self.state, self._rows = None, defaultdict(list)


def _locked(folder: Path) -> IO[bytes] | None:
    """Holds the folder for this process; whatever ends the process lets go of it."""
    try:
        import fcntl
    except ImportError:  # not on this system: two recorders in one folder are the user's care
        return None
    handle = (folder / ".recording").open("wb")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        handle.close()
        raise InputError(f"Another recorder writes to {folder}: close it, or give each a folder of its own.") from None
    return handle
