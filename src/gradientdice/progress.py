"""A progress bar on a terminal, silence elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(what: str, total: int, figure: str = "") -> Iterator[Callable[..., None]]:
    """Yields a function that advances the bar; the bar goes to standard error and only if that is a terminal.

    Args:
        what: is counted.
        total: how many there are.
        figure: the name of a figure that the function's second argument brings up to date.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        TextColumn("{task.fields[figure]}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=total, figure="")

        def advance(amount: int, latest: str = "") -> None:
            progress.update(task, advance=amount, figure=f"{figure} {latest}" if latest else "")

        yield advance
