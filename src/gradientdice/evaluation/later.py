"""A value that is computed when it is first asked for: for parts of a result that take long and few readers want."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Later(Generic[T]):
    """A value that is computed once, at the first access, and then kept; what it is computed from is then let go.

    A copy is the same object, so that all copies share one computation. Pickling computes the value first: what it is
    computed from may be large, and may not be picklable.

    Args:
        make: computes the value. An error that it raises is raised at the access, and the next access tries again.
        is_cheap: whether computing it takes next to no time, so that even what must be quick may ask for it.

    Example:
        >>> answer = Later(lambda: print("computing") or 42)
        >>> answer.value, answer.value
        computing
        (42, 42)
    """

    _value: T

    def __init__(self, make: Callable[[], T], *, is_cheap: bool = False) -> None:
        self._make: Callable[[], T] | None = make
        self._is_cheap = is_cheap

    @classmethod
    def known(cls, value: T) -> Later[T]:
        """A value that needs no computing."""
        held = cls(lambda: value)
        held._value, held._make = value, None
        return held

    @property
    def value(self) -> T:
        """The value, computed on the first access."""
        # The value is stored before `make` is dropped: another thread sees either of the two.
        make = self._make
        if make is not None:
            self._value = make()
            self._make = None
        return self._value

    @property
    def is_known(self) -> bool:
        """Whether the value has been computed."""
        return self._make is None

    @property
    def is_cheap(self) -> bool:
        """Whether the value has been computed, or takes next to no time."""
        return self._is_cheap or self.is_known

    def __copy__(self) -> Later[T]:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Later[T]:
        return self

    def __reduce__(self) -> tuple[Callable[[T], Later[T]], tuple[T]]:
        return Later.known, (self.value,)
