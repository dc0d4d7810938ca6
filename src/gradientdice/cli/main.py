"""The entry point of the command line."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from gradientdice.cli import reproduce
from gradientdice.cli.evaluate import compare, evaluate
from gradientdice.cli.options import REFUSED
from gradientdice.errors import InputError

DEBUG = "--debug"

app = typer.Typer(help="How well would this policy do? Off-policy evaluation from logged data.", no_args_is_help=True)
app.command()(evaluate)
app.command()(compare)
app.add_typer(reproduce.app, name="reproduce")


@app.callback()
def options(debug: Annotated[bool, typer.Option(DEBUG, help="Show a traceback on errors.")] = False) -> None:
    """Options of every command; `main` looks for --debug itself."""


def main() -> None:
    """Runs the command: refused input ends with one line and exit code 2; --debug shows the traceback."""
    try:
        app()
    except InputError as error:
        if DEBUG in sys.argv[1:]:
            raise
        print(f"gradientdice: {error}", file=sys.stderr)
        raise SystemExit(REFUSED) from None
