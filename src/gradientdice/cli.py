"""The command line: thin over the library, with one-line errors."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gradientdice.errors import InputError

app = typer.Typer(help="How well would this policy do? Off-policy evaluation from logged data.", no_args_is_help=True)
reproduce = typer.Typer(help="Run experiments and write tables, figures and a results page.", no_args_is_help=True)
app.add_typer(reproduce, name="reproduce")

REFUSED, FAILED, NOT_TRUSTED = 2, 3, 4


class Settings:
    """What the options of every command set."""

    debug = False


class Interval(StrEnum):
    """The names of the interval methods."""

    normal = "normal"
    bootstrap = "bootstrap"
    likelihood = "likelihood"


Log = Annotated[Path, typer.Argument(help="The log: a .parquet (file or folder), .npz or .csv file.")]
PolicyOption = Annotated[
    str,
    typer.Option("--policy", help="module:name, a table as .csv, .npy or .npz, or 'columns' for columns of the log."),
]
Discount = Annotated[float, typer.Option("--discount", help="γ; 1 is the average reward.")]
Columns = Annotated[
    list[str] | None,
    typer.Option("--column", help="field=name, for a log with other names; may be given several times."),
]
Confidence = Annotated[float, typer.Option("--confidence", help="Of the interval.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="Folder for tables, figures and the page.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
Page = Annotated[
    Path | None, typer.Option("--page", help="Also write the page here, its figures in a folder beside it.")
]


@app.callback()
def options(debug: Annotated[bool, typer.Option("--debug", help="Show a traceback on errors.")] = False) -> None:
    """Options of every command."""
    Settings.debug = debug


@app.command()
def evaluate(
    log: Log,
    policy: PolicyOption,
    discount: Discount,
    column: Columns = None,
    confidence: Confidence = 0.95,
    interval: Annotated[Interval, typer.Option("--interval", help="How the interval is made.")] = Interval.normal,
    report: Annotated[Path | None, typer.Option("--report", help="Write an HTML report here.")] = None,
    json: Json = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 4 if the verdict is 'do not trust'.")] = False,
    force: Force = False,
) -> None:
    """The value of a policy from a log, with an interval and a verdict."""
    import gradientdice as gd
    from gradientdice.policies.specification import load_policy

    methods = {
        Interval.normal: gd.NormalInterval,
        Interval.bootstrap: gd.BootstrapInterval,
        Interval.likelihood: gd.EmpiricalLikelihood,
    }
    if report is not None and report.exists() and not force:
        raise InputError(f"{report} exists. Choose another name, or give --force to replace it.")
    data, target = gd.load(log, columns=_mapping(column)), load_policy(policy, log)
    method = methods[interval]()
    estimate = gd.evaluate(data, target, discount=discount, interval=method, confidence=confidence, progress=True)
    typer.echo(estimate.to_json() if json else str(estimate))
    if report is not None:
        comparison = gd.compare(data, target, _estimators(discount), confidence=confidence)
        estimate.report(report, comparison=comparison, force=force)
        typer.echo(f"Wrote {report}.", err=True)
    if not estimate.status.ok:
        raise typer.Exit(FAILED)
    if strict and estimate.verdict is gd.Verdict.DO_NOT_TRUST:
        raise typer.Exit(NOT_TRUSTED)


@app.command()
def compare(
    log: Log,
    policy: PolicyOption,
    discount: Discount,
    column: Columns = None,
    confidence: Confidence = 0.95,
    json: Json = False,
) -> None:
    """Every estimator on one log, side by side, ranked by held-out Bellman loss and precision."""
    import gradientdice as gd
    from gradientdice.policies.specification import load_policy

    data, target = gd.load(log, columns=_mapping(column)), load_policy(policy, log)
    table = gd.compare(data, target, _estimators(discount), confidence=confidence)
    if json:
        typer.echo(table.to_json(orient="records", indent=2))
        return
    for row in table.to_dict("records"):
        mark = "  ← use this" if row["choice"] else ""
        known = row["low"] is not None and row["low"] == row["low"]  # pandas makes None a NaN beside numbers
        interval = f"[{row['low']:.6g}, {row['high']:.6g}]" if known else "(no interval)"
        figures = row["note"] or f"{row['value']:.6g}  {interval}  {row['verdict']}"
        remarks = f"\n    ({row['remarks']})" if row["remarks"] else ""
        typer.echo(f"{row['estimator']}{mark}\n    {figures.rstrip()}{remarks}")


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
    write = hard_example.write_page
    _write_pages(output / "hard_example.md", page, figures, lambda path, links: write(path, frame, links))


@reproduce.command("coverage")
def reproduce_coverage(
    output: Output = Path("results/coverage"),
    quick: Annotated[bool, typer.Option("--quick", help="Few replications: a look within a few minutes.")] = False,
    force: Force = False,
    page: Page = None,
) -> None:
    """How often intervals cover the truth, and how wide they are: six MDPs, right and wrong features."""
    from gradientdice.experiments.coverage.page import write_page
    from gradientdice.experiments.coverage.run import FULL, QUICK, run

    scale = QUICK if quick else FULL
    _, table = run(output, scale, force=force)
    _write_pages(output / "coverage.md", page, {}, lambda path, links: write_page(path, table, scale))


@reproduce.command("verdicts")
def reproduce_verdicts(
    output: Output = Path("results/verdicts"),
    quick: Annotated[bool, typer.Option("--quick", help="Few replications.")] = False,
    force: Force = False,
    page: Page = None,
) -> None:
    """How often each verdict is right: good and bad overlap, few and many rows, right and wrong features."""
    from gradientdice.experiments import verdicts

    scale = verdicts.QUICK if quick else verdicts.Scale()
    _, table = verdicts.run(output, scale, force=force)
    _write_pages(output / "verdicts.md", page, {}, lambda path, links: verdicts.write_page(path, table, scale))


@reproduce.command("continuous")
def reproduce_continuous(
    output: Output = Path("results/continuous"),
    quick: Annotated[bool, typer.Option("--quick", help="Smaller and fewer logs.")] = False,
    replications: Annotated[int, typer.Option("--replications", help="Logs of each problem.")] = 50,
    force: Force = False,
    page: Page = None,
) -> None:
    """The default answer on pendulum, CartPole and MountainCar, with nothing tuned."""
    from gradientdice.experiments.continuous.page import write_page
    from gradientdice.experiments.continuous.run import QUICK, Scale, run

    scale = QUICK if quick else Scale(replications=replications)
    _, table = run(output, scale, force=force)
    _write_pages(output / "continuous.md", page, {}, lambda path, links: write_page(path, table, scale))


@reproduce.command("reacher")
def reproduce_reacher(
    output: Output = Path("results/reacher"),
    quick: Annotated[bool, typer.Option("--quick", help="A small log and few runs: within five minutes.")] = False,
    logs: Annotated[int, typer.Option("--logs", help="Logs for our own answer.")] = 20,
    force: Force = False,
    page: Page = None,
) -> None:
    """Reacher with networks, figure 4: 3,240 runs, and our own answer beside them."""
    from gradientdice.experiments.reacher.figures import draw_all
    from gradientdice.experiments.reacher.page import write_page
    from gradientdice.experiments.reacher.run import QUICK, Scale, run

    scale = QUICK if quick else Scale(logs=logs)
    store, grid, own = run(output, scale, force=force)
    figures = draw_all(store, grid)
    _write_pages(output / "reacher.md", page, figures, lambda path, links: write_page(path, grid, own, scale, links))


@reproduce.command("neural")
def reproduce_neural(
    output: Output = Path("results/neural"),
    quick: Annotated[bool, typer.Option("--quick", help="Two logs of each problem.")] = False,
    force: Force = False,
    page: Page = None,
) -> None:
    """How often the intervals of neural answers cover: 100 logs each of pendulum and Reacher."""
    from gradientdice.experiments import neural_coverage

    scale = neural_coverage.QUICK if quick else neural_coverage.Scale()
    _, table = neural_coverage.run(output, scale, force=force)
    _write_pages(output / "neural.md", page, {}, lambda path, links: neural_coverage.write_page(path, table))


@reproduce.command("shootout")
def reproduce_shootout(
    output: Output = Path("results/shootout"),
    quick: Annotated[bool, typer.Option("--quick", help="Two small logs a cell: within three minutes.")] = False,
    large_seeds: Annotated[int, typer.Option("--large-seeds", help="Logs a cell of Taxi and PageRank.")] = 20,
    force: Force = False,
    page: Page = None,
) -> None:
    """Every estimator on every benchmark, at several sizes and overlaps, and a guide for choosing."""
    from gradientdice.experiments.shootout.figures import draw_all
    from gradientdice.experiments.shootout.page import write_page
    from gradientdice.experiments.shootout.run import QUICK, Scale, run

    scale = QUICK if quick else Scale(large_seeds=large_seeds)
    store, frame = run(output, scale, force=force)
    figures = draw_all(store, frame)
    _write_pages(output / "shootout.md", page, figures, lambda path, links: write_page(path, frame, scale, links))


def _estimators(discount: float) -> list:
    import gradientdice as gd

    every = {**gd.ESTIMATORS, **gd.RELATED}
    return [estimator(discount) for estimator in every.values()] + [gd.DualDICE(discount, power=2.0)]


def _mapping(columns: list[str] | None) -> dict[str, str]:
    pairs = [column.partition("=") for column in columns or []]
    for field, equals, name in pairs:
        if not (field and equals and name):
            raise InputError(
                f"--column {field}{equals}{name}: write field=name, for example --column states=observation."
            )
    return {field: name for field, _, name in pairs}


def _write_pages(
    own: Path, page: Path | None, figures: dict[str, Path], write: Callable[[Path, dict[str, str]], None]
) -> None:
    write(own, {name: path.name for name, path in figures.items()})
    typer.echo(f"Wrote {own}, its figures and its tables.")
    if page is not None:
        folder = page.with_suffix("")
        for path in figures.values():
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder / path.name)
        write(page, {name: f"{folder.name}/{path.name}" for name, path in figures.items()})
        typer.echo(f"Wrote {page}.")


def main() -> None:
    """The entry point: refused input ends with one line and exit code 2; --debug shows the traceback."""
    try:
        app()
    except InputError as error:
        if Settings.debug:
            raise
        print(f"gradientdice: {error}", file=sys.stderr)
        raise SystemExit(REFUSED) from None
