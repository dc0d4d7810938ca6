"""Work in threads beside the one that makes what is worked on, with results in their order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Made = TypeVar("Made")
Result = TypeVar("Result")


def for_each_beside(
    made: Iterable[Made], use: Callable[[Made], Result], take: Callable[[Result], None], threads: int
) -> None:
    """Uses each in one of some threads while the next ones are made here; takes the results here, in their order.

    Args:
        made: what is used. When the next is asked for, at most `threads` before it are still in use.
        use: what is done with each, in another thread.
        take: what is done with each result, in this thread.
        threads: how many; with none all is done in this one.
    """
    if threads == 0:
        for one in made:
            take(use(one))
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for one in made:
            waiting.append(pool.submit(use, one))
            if len(waiting) > threads:
                take(waiting.popleft().result())
        while waiting:
            take(waiting.popleft().result())
