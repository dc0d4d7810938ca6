"""Arguments, options and exit codes that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradientdice.base.effort import Effort
from gradientdice.base.errors import InputError

if TYPE_CHECKING:
    from gradientdice.log.transitions import Transitions

BROKEN, REFUSED, FAILED, NOT_TRUSTED = 1, 2, 3, 4

# Of every path: readable=False, since the library itself says in a sentence what may not be read.
Log = Annotated[
    Path,
    typer.Argument(
        help="The log: a .parquet (file or folder), .npz, .csv, .jsonl or .h5 file, or the name of a Minari dataset.",
        readable=False,
    ),
]
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
    typer.Option(
        "--column",
        help="field=name, for a log with other names, or field=name,name,… for a vector, or field= for one that "
        "it does not have; may be given several times.",
    ),
]
EpisodeEnds = Annotated[
    str | None,
    typer.Option(
        "--episode-ends", help="'terminated' or 'truncated': what last rows of episodes are, where no column says so."
    ),
]
Episodes = Annotated[
    str | None,
    typer.Option(
        "--episodes", help="Of a folder: 'per file' if each file numbers its episodes anew, or 'across files'."
    ),
]
Confidence = Annotated[float, typer.Option("--confidence", help="Of the interval.")]
EffortOption = Annotated[Effort, typer.Option("--effort", help="How much work the answer may take.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Report = Annotated[Path | None, typer.Option("--report", help="Write an HTML report here.", readable=False)]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]


def read_log(
    log: Path, columns: list[str] | None, episode_ends: str | None = None, episodes: str | None = None
) -> Transitions:
    """The log; what was guessed about it is said in a line each, beside the answer."""
    from gradientdice.log.formats.load import load

    data = load(log, columns=column_names(columns), episode_ends=episode_ends, episodes=episodes)
    for note in data.notes:
        typer.echo(f"{log.name}: {note}.", err=True)
    return data


def column_names(columns: list[str] | None) -> dict[str, str | list[str] | None]:
    """The values of --column as field -> name, or names, or None where there is no name."""
    pairs = [column.partition("=") for column in columns or []]
    for field, equals, name in pairs:
        if not (field and equals):
            raise InputError(
                f"--column {field}{equals}{name}: write field=name, for example --column states=observation."
            )
    return {field: name.split(",") if "," in name else name or None for field, _, name in pairs}


def one_or_several(discounts: list[float]) -> Any:
    """The values of --discount as the library takes them: one number, or a list of several."""
    return discounts[0] if len(discounts) == 1 else discounts
