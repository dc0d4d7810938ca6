"""Wrong calls: every argument of every public call, given each of many things that it is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gradientdice as gd
from reliability.right_calls import RightCall, right_calls


class Something:
    """A class that has nothing that anyone asks for."""


JUNK: tuple[Any, ...] = (
    None, 0, -1, 1.5, float("nan"), float("inf"), True, "x", "", b"x", [], [1], (), {}, {"a": 1}, set(), object(),
    Something, Something(), lambda *given: None, np.zeros(0), np.array(1.0), np.array(["a"]), 1j, 10**12, 10**30, 10**400,
    [None], np.full((2, 2), np.nan), range(3), gd, ..., np.ma.MaskedArray([1.0, 2.0], [True, False]), [[1], [1, 2]],
)  # fmt: skip

# Trained with JAX, which takes seconds to compile: here only what is refused before that is tried.
HARMLESS_TO_SWEEP = ("seeds", "progress", "max_bytes", "checkpoint")


class Call(NamedTuple):
    """A call with one wrong argument."""

    right: RightCall
    argument: str
    arguments: dict[str, Any]

    @property
    def function(self) -> Callable[..., Any]:
        return self.right.function

    def __str__(self) -> str:
        return f"{self.right}({self.argument}={self.arguments[self.argument]!r:.40})"


def wrong_calls(folder: Path) -> Iterator[Call]:
    """All of them; some are right, as None is where an argument may be left out."""
    for right in right_calls(folder):
        for name in right.names:
            for value in JUNK:
                if may_be_tried(right, name, value):
                    yield Call(right, name, {**right.arguments, name: value})


def may_be_tried(right: RightCall, name: str, value: Any) -> bool:
    """Whether this is quick: not where training would begin."""
    if right.function is not gd.sweep or name not in HARMLESS_TO_SWEEP:
        return True
    if name == "seeds":
        return not isinstance(value, (int, list, range, tuple)) or value == []
    return not (value is None or isinstance(value, (bool, int, str)))
