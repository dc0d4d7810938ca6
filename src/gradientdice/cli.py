"""The command line: thin over the library, with one-line errors."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from gradientdice.errors import InputError

app = typer.Typer(help="How well would this policy do? Off-policy evaluation from logged data.", no_args_is_help=True)
reproduce = typer.Typer(
    help="Run the paper's experiments and write tables, figures and a results page.", no_args_is_help=True
)
app.add_typer(reproduce, name="reproduce")

Output = Annotated[Path, typer.Option("--output", "-o", help="Folder for tables, figures and the page.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the results of other settings in that folder.")]
Page = Annotated[
    Path | None, typer.Option("--page", help="Also write the page here, with its figures in a folder beside it.")
]

REFUSED = 2


@app.callback()
def options(debug: Annotated[bool, typer.Option("--debug", help="Show a traceback on errors.")] = False) -> None:
    """Options of every command."""
    global _debug
    _debug = debug


_debug = False


@reproduce.command("boyan")
def reproduce_boyan(
    output: Output = Path("results/boyan"),
    quick: Annotated[bool, typer.Option("--quick", help="Shorter and fewer runs: a look within a minute.")] = False,
    force: Force = False,
    page: Page = None,
) -> None:
    """Boyan's Chain, figures 2 and 3: 9,720 runs, three studies of our own, and the closed form."""
    from gradientdice.experiments.boyan.figures import draw_all
    from gradientdice.experiments.boyan.grid import FULL, QUICK
    from gradientdice.experiments.boyan.page import write_page
    from gradientdice.experiments.boyan.run import run

    scale = QUICK if quick else FULL
    store, tables = run(output, scale, force=force)
    figures = draw_all(store, tables)
    _write_pages(output / "boyan.md", page, figures, lambda path, links: write_page(path, tables, scale, links))


@reproduce.command("hard-example")
def reproduce_hard_example(
    output: Output = Path("results/hard-example"), force: Force = False, page: Page = None
) -> None:
    """The one-state example on which GenDICE's gradient vanishes at a wrong point."""
    from gradientdice.experiments import hard_example

    store, frame = hard_example.run(output, force=force)
    figures = hard_example.draw(store, frame)
    _write_pages(
        output / "hard_example.md", page, figures, lambda path, links: hard_example.write_page(path, frame, links)
    )


def _write_pages(own: Path, page: Path | None, figures: dict[str, Path], write) -> None:  # noqa: ANN001 - a local function
    write(own, {name: path.name for name, path in figures.items()})
    typer.echo(f"Wrote {own}, its figures and its tables.")
    if page is not None:
        folder = page.with_suffix("")
        folder.mkdir(parents=True, exist_ok=True)
        for path in figures.values():
            shutil.copy(path, folder / path.name)
        write(page, {name: f"{folder.name}/{path.name}" for name, path in figures.items()})
        typer.echo(f"Wrote {page} with its figures in {folder}.")


def main() -> None:
    """The entry point: refused input ends with one line and exit code 2; --debug shows the traceback."""
    try:
        app()
    except InputError as error:
        if _debug:
            raise
        print(f"gradientdice: {error}", file=sys.stderr)
        raise SystemExit(REFUSED) from None
