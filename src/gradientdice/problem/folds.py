"""The log in folds, and the moments of all folds but one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from gradientdice.data.transitions import Transitions
from gradientdice.errors import InputError
from gradientdice.functions.rows import Rows
from gradientdice.problem.moments import Moments
from gradientdice.problem.stream import LogDesign


@dataclass(frozen=True, eq=False)
class Folds:
    """Which fold each transition and each initial state is in; rows of one episode are in one fold."""

    rows: Int[np.ndarray, " n"]
    initial: Int[np.ndarray, " n0"]
    count: int

    @classmethod
    def create(cls, data: Transitions, count: int, seed: int) -> Folds:
        """Folds of about equal size, drawn at random."""
        rng = np.random.default_rng(seed)
        starts = 0 if data.start_states is None else len(data.start_states)
        units = len(data) if data.episodes is None else len(np.unique(data.episodes))
        if units < count:
            raise InputError(
                f"Cross-fitting needs at least {count} independent units and the log has {units} "
                f"{'rows' if data.episodes is None else 'episodes'}: give more, or functions= for a plain fit."
            )
        if data.episodes is None:
            return cls(_balanced(len(data), count, rng), _balanced(starts, count, rng), count)
        numbers, episode = np.unique(data.episodes, return_inverse=True)
        fold = _balanced(len(numbers), count, rng)
        initial = fold if data.initial_states is None else _balanced(starts, count, rng)
        return cls(fold[episode], initial, count)


def _balanced(size: int, count: int, rng: np.random.Generator) -> np.ndarray:
    return rng.permutation(size) % count


def fold_moments(log: LogDesign, folds: Folds) -> list[Moments]:
    """For each fold, the moments of all the other folds: one pass over the log, since moments add up."""
    parts: list[Moments | None] = [None] * folds.count
    design = None
    for rows, design in log.chunks():
        for fold in range(folds.count):
            chosen = np.flatnonzero(folds.rows[rows] == fold)
            part = Moments.from_rows(
                design.current.take(chosen),
                design.following.take(chosen),
                design.rewards[chosen],
                design.weights[chosen],
                design.width,
            )
            known = parts[fold]
            parts[fold] = part if known is None else known + part
    assert design is not None
    totals = []
    for fold in range(folds.count):
        others = [part for number, part in enumerate(parts) if number != fold and part is not None]
        total = others[0]
        for part in others[1:]:
            total = total + part
        initial = None if log.initial is None else _without(log.initial, folds.initial == fold)
        totals.append(total.completed(log, design, initial))
    return totals


def _without(rows: Rows, left_out: np.ndarray) -> Rows:
    kept = np.flatnonzero(~left_out)
    return rows.take(kept if len(kept) else np.arange(len(left_out)))
