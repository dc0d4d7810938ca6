"""The callback for d3rlpy.

Its `fit` has no way to end early but an exception: in a `with` block of the callback that exception ends there.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradientdice.evaluation.watching.watch import Watch


class _Stop(Exception):
    """Ends the training, and no more."""


class Callback:
    """Looks when it is time; ends the training in a `with` block when it should."""

    def __init__(self, watch: Watch) -> None:
        self._watch, self._may_stop = watch, False

    def __call__(self, algo: Any, epoch: int, total_step: int) -> None:
        """What `fit` calls after every step."""
        if self._watch.due(total_step) and not self._watch.look(total_step, algo) and self._may_stop:
            raise _Stop

    def __enter__(self) -> Callback:
        self._may_stop = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._may_stop = False
        return isinstance(error, _Stop)
