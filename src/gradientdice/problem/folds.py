"""The log in folds, and the moments of all folds but one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from gradientdice.base.accelerator import Devices
from gradientdice.base.errors import InputError
from gradientdice.functions.rows import add_product
from gradientdice.log.transitions import Transitions
from gradientdice.problem.device_sums import DeviceSums
from gradientdice.problem.moments import Moments, MomentSums
from gradientdice.problem.stream import LogDesign


@dataclass(frozen=True, eq=False)
class Folds:
    """Which fold each transition and each initial state is in; rows that are not independent are in one fold."""

    rows: Int[np.ndarray, " n"]
    initial: Int[np.ndarray, " n0"]
    count: int

    @classmethod
    def create(cls, data: Transitions, count: int, seed: int) -> Folds:
        """Folds of about equal size, drawn at random."""
        rng = np.random.default_rng(seed)
        starts = 0 if data.start_states is None else len(data.start_states)
        units = data.units
        if units.count < count:
            raise InputError(
                f"Cross-fitting needs at least {count} independent units and the log has {units.count} "
                f"{'rows' if data.episodes is None else 'episodes'}: give more, or functions= for a plain fit."
            )
        # What counts 0 times belongs to no unit; it is in the first fold, where it counts as little.
        fold = np.append(_balanced(units.count, count, rng), 0)
        rows = fold[units.rows]
        if data.start_states is not None and data.initial_states is None:
            return cls(rows, rows[data.first_rows], count)
        return cls(rows, _balanced(starts, count, rng), count)

    def coarser(self, count: int) -> Folds:
        """Fewer folds, each of several of these: a fit without one of them has seen none of its parts."""
        return Folds(self.rows % count, self.initial % count, min(count, self.count))


def _balanced(size: int, count: int, rng: np.random.Generator) -> np.ndarray:
    return rng.permutation(size) % count


def fold_moments(log: LogDesign, folds: Folds) -> list[Moments]:
    """For each fold, the moments of all the other folds: one pass over the log, since moments add up."""
    if log.devices is not None:
        return list(_on_device(log, folds, log.devices))
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
        starts = None if log.initial is None else counted_starts(folds.initial != fold, log.initial_weights)
        totals.append(total.completed(log, design, starts))
    return totals


def moments_without(log: LogDesign, folds: Folds) -> Iterator[Moments]:
    """The same one after the other, in sums that are updated in place: less memory and time where features are many.

    Sums over current rows alone are the same for every policy, and are kept with the log's features.
    """
    if log.devices is not None:
        yield from _on_device(log, folds, log.devices)
        return
    width = log.width
    known = log.features.sums
    own = [MomentSums.zero(width) for _ in range(folds.count)] if known is None else known
    following = [np.zeros((width, width)) for _ in range(folds.count)]
    design = None
    for rows, design in log.chunks():
        for fold in range(folds.count):
            chosen = np.flatnonzero(folds.rows[rows] == fold)
            if len(chosen):
                add_product(
                    following[fold], design.following.take(chosen), design.current.take(chosen), design.weights[chosen]
                )
                if known is None:
                    own[fold].add(design, chosen)
    log.features.sums = own
    assert design is not None
    for fold in range(folds.count):
        others = [number for number in range(folds.count) if number != fold]
        total = MomentSums.zero(width)
        for number in others:
            total.merge(own[number])
        after = np.zeros((width, width))
        for number in others:
            after += following[number]
        starts = None if log.initial is None else counted_starts(folds.initial != fold, log.initial_weights)
        yield total.moments(after).completed(log, design, starts)


def _on_device(log: LogDesign, folds: Folds, devices: Devices) -> Iterator[Moments]:
    sums = DeviceSums(devices, log.width, folds.count)
    for rows, design in log.chunks():
        sums.add(design, folds.rows[rows])
    for fold in range(folds.count):
        starts = None if log.initial is None else counted_starts(folds.initial != fold, log.initial_weights)
        others = MomentSums.on_device(sums, (np.arange(folds.count) != fold).astype(np.float64))
        yield others.completed(log, log.first, starts)


def counted_starts(marked: Bool[np.ndarray, " n0"], weights: Float[np.ndarray, " n0"]) -> Bool[np.ndarray, " n0"]:
    """The initial states that are marked; all of them where none of those counts."""
    return marked if weights[marked].any() else np.ones(len(marked), dtype=bool)
