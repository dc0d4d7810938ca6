"""Arguments, options and exit codes that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gradientdice.effort import Effort
from gradientdice.errors import InputError

BROKEN, REFUSED, FAILED, NOT_TRUSTED = 1, 2, 3, 4

# Of every path: readable=False, since the library itself says in a sentence what may not be read.
Log = Annotated[Path, typer.Argument(help="The log: a .parquet (file or folder), .npz or .csv file.", readable=False)]
PolicyOption = Annotated[
    str,
    typer.Option("--policy", help="module:name, a table as .csv, .npy or .npz, or 'columns' for columns of the log."),
]
Discount = Annotated[float, typer.Option("--discount", help="γ; 1 is the average reward.")]
Discounts = Annotated[
    list[float], typer.Option("--discount", help="γ; 1 is the average reward. May be given several times.")
]
Columns = Annotated[
    list[str] | None,
    typer.Option("--column", help="field=name, for a log with other names; may be given several times."),
]
Confidence = Annotated[float, typer.Option("--confidence", help="Of the interval.")]
EffortOption = Annotated[Effort, typer.Option("--effort", help="How much work the answer may take.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Report = Annotated[Path | None, typer.Option("--report", help="Write an HTML report here.", readable=False)]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]


def column_names(columns: list[str] | None) -> dict[str, str]:
    """The values of --column as field -> name."""
    pairs = [column.partition("=") for column in columns or []]
    for field, equals, name in pairs:
        if not (field and equals and name):
            raise InputError(
                f"--column {field}{equals}{name}: write field=name, for example --column states=observation."
            )
    return {field: name for field, _, name in pairs}


def one_or_several(discounts: list[float]) -> Any:
    """The values of --discount as the library takes them: one number, or a list of several."""
    return discounts[0] if len(discounts) == 1 else discounts
