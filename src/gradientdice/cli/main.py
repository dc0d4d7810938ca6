"""The entry point of the command line."""

from __future__ import annotations

import sys
from typing import Annotated, NoReturn

import typer

from gradientdice.base.errors import InputError
from gradientdice.cli.doctor import doctor
from gradientdice.cli.evaluate import compare, evaluate
from gradientdice.cli.extensions import Commands
from gradientdice.cli.interrupts import ends_soon_when_interrupted
from gradientdice.cli.options import BROKEN, REFUSED
from gradientdice.cli.rank import rank, select

DEBUG = "--debug"

app = typer.Typer(
    cls=Commands,
    help="How well would this policy do? Off-policy evaluation from logged data.",
    no_args_is_help=True,
)
app.command()(evaluate)
app.command()(compare)
app.command()(rank)
app.command()(select)
app.command()(doctor)


@app.callback()
def options(debug: Annotated[bool, typer.Option(DEBUG, help="Show a traceback on errors.")] = False) -> None:
    """Options of every command; `main` looks for --debug itself."""


def main() -> None:
    """Runs the command: whatever goes wrong ends with one line and an exit code; --debug shows the traceback."""
    try:
        with ends_soon_when_interrupted():
            app()
    except Exception as error:
        if DEBUG in sys.argv[1:]:
            raise
        _end(error)


def _end(error: Exception) -> NoReturn:
    if isinstance(error, InputError):
        print(f"gradientdice: {error}", file=sys.stderr)
        raise SystemExit(REFUSED) from None
    what = "there is not enough memory" if isinstance(error, MemoryError) else f"{type(error).__name__}: {error}"
    print(f"gradientdice: {' '.join(what.split())[:400]} ({DEBUG} before the command shows where)", file=sys.stderr)
    raise SystemExit(BROKEN) from None
