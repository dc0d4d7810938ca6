"""Logs beyond memory on the command line: --scan, --scheduler and --checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradientdice.base.errors import InputError
from gradientdice.base.extras import optional
from gradientdice.cli.options import column_names, read_log

if TYPE_CHECKING:
    from gradientdice.log.scanning.log import ScannedLog
    from gradientdice.log.transitions import Transitions
    from gradientdice.policies import Policy

# A scheduler that runs answers within milliseconds; one that does not should not keep anybody waiting.
PATIENCE_SECONDS = 10

Scan = Annotated[bool, typer.Option("--scan", help="Read the log in batches: Parquet files beyond memory.")]
Scheduler = Annotated[
    str | None, typer.Option("--scheduler", help="With --scan: a Dask scheduler's address; its workers read the log.")
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint", help="With --scan: a folder to which passes write, and from which they go on.", readable=False
    ),
]


@dataclass(frozen=True)
class Reading:
    """How a command reads its log.

    Attributes:
        log: the log's place.
        columns: the values of --column.
        scan: whether it is read in batches.
        scheduler: a Dask scheduler's address; None reads here.
        checkpoint: where passes write as they go; None for nowhere.
        episode_ends: the value of --episode-ends.
        episodes: the value of --episodes.
    """

    log: Path
    columns: list[str] | None
    scan: bool = False
    scheduler: str | None = None
    checkpoint: Path | None = None
    episode_ends: str | None = None
    episodes: str | None = None

    def __post_init__(self) -> None:
        for name in ("scheduler", "checkpoint"):
            if getattr(self, name) is not None and not self.scan:
                raise InputError(f"--{name} is for logs that are read in batches: add --scan.")
        if self.scan and self.episode_ends is not None:
            raise InputError("--episode-ends is for logs that are loaded: leave --scan out, or write a column of ends.")

    @contextmanager
    def opened(self) -> Iterator[Transitions | ScannedLog]:
        """The log, in memory or scanned; a connection to a cluster is closed at the end."""
        if not self.scan:
            yield read_log(self.log, self.columns, self.episode_ends, self.episodes)
            return
        from gradientdice.log.scanning.log import scan

        names: dict[str, Any] = column_names(self.columns)
        with nullcontext() if self.scheduler is None else _connected(self.scheduler) as client:
            yield scan(self.log, columns=names, client=client, episodes=self.episodes)

    def policy(self, specification: str, data: Transitions | ScannedLog | None = None) -> Policy:
        """The policy that a specification names; columns of the log go with its rows, wherever these went."""
        from gradientdice.log.transitions import Transitions
        from gradientdice.policies.specification import load_policy

        rows = data.source_rows if isinstance(data, Transitions) else None
        return load_policy(specification, None if self.scan else self.log, rows)


def _connected(address: str) -> Any:
    """A client of a Dask cluster, as a context."""
    distributed = optional("distributed", "cluster")
    try:
        return distributed.Client(address, timeout=PATIENCE_SECONDS)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(
            f"--scheduler {address}: no Dask scheduler answers there ({str(error)[:120]}). Give the address that it "
            "printed when it was started, such as tcp://10.0.0.1:8786."
        ) from error
