"""Several passes over a log as one: each row is read once for all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int

from gradientdice.log.scanning.episodes import RUN_KEYS, Counter, EpisodePass
from gradientdice.log.scanning.parts import Batch
from gradientdice.log.scanning.passes import Sums


@dataclass(eq=False)
class Together(EpisodePass):
    """Passes that sum over the same rows and episodes; the sums of each have its number before their names.

    Attributes:
        passes: the passes.
    """

    passes: tuple[EpisodePass, ...] = field(kw_only=True)

    @property
    def kind(self) -> str:
        """The kinds of the passes, each once."""
        return "-and-".join(dict.fromkeys(each.kind for each in self.passes))

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that any of them reads."""
        return tuple(dict.fromkeys(name for each in self.passes for name in each.fields))

    @property
    def is_heavy(self) -> bool:
        """Whether one of them is."""
        return any(each.is_heavy for each in self.passes)

    def of(self, number: int, sums: Sums) -> Sums:
        """The sums of one of the passes."""
        prefix = f"{number}."
        return {name.removeprefix(prefix): array for name, array in sums.items() if name.startswith(prefix)}

    def counter(self) -> Counter:
        """All counters."""
        return _Counters([each.counter() for each in self.passes])

    def run_values(self, batch: Batch, first: Int[np.ndarray, " m"]) -> Float[np.ndarray, "m k"]:
        """What each pass knows of each run, side by side, after how much that is."""
        values = [each.run_values(batch, first) for each in self.passes]
        # Kept with the runs: those of a checkpoint, or of another worker, come without the batch that they were in.
        widths = np.array([own.shape[1] for own in values], dtype=np.float64)
        return np.column_stack([np.broadcast_to(widths, (len(first), len(widths))), *values])

    def joined(self, group: Int[np.ndarray, " m"], runs: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "g k"]:
        """Each pass joins its own numbers."""
        first = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
        parts = [each.joined(group, own) for each, own in zip(self.passes, self._parts(runs), strict=True)]
        return np.column_stack([runs[first, : len(self.passes)], *parts])

    def closed(self, runs: Float[np.ndarray, "m k"]) -> Sums:
        """What whole episodes add to each."""
        return _numbered(each.closed(own) for each, own in zip(self.passes, self._parts(runs), strict=True))

    def single_rows(self, batch: Batch) -> Sums:
        """What rows without episodes add to each."""
        return _numbered(each.single_rows(batch) for each in self.passes)

    def together(self, left: Sums, right: Sums) -> Sums:
        """Each pass puts its own sums together."""
        left, right = ({k: v for k, v in side.items() if k not in RUN_KEYS} for side in (left, right))
        return _numbered(
            each.together(self.of(number, left), self.of(number, right)) for number, each in enumerate(self.passes)
        )

    def _parts(self, runs: Float[np.ndarray, "m k"]) -> list[Float[np.ndarray, "m own"]]:
        count = len(self.passes)
        bounds = np.append(0, np.cumsum(runs[0, :count])).astype(np.int64) + count
        return [runs[:, start:stop] for start, stop in pairwise(bounds)]


class _Counters:
    def __init__(self, counters: list[Counter]) -> None:
        self._counters = counters

    def add(self, batch: Batch) -> None:
        """Adds the rows of a batch to each."""
        for counter in self._counters:
            counter.add(batch)

    def sums(self) -> Sums:
        """What each comes to."""
        return _numbered(counter.sums() for counter in self._counters)


def _numbered(sums: Iterable[Sums]) -> Sums:
    return {f"{number}.{name}": array for number, own in enumerate(sums) for name, array in own.items()}
