"""`gradientdice reproduce NAME`: one command per entry of the registry of experiments."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer

from gradientdice_studies.registry import EXPERIMENTS, Experiment

# The library's command line finds it by its entry point, in the group `gradientdice.commands`.
app = typer.Typer(
    help="Run experiments and write tables, figures and a results page.", no_args_is_help=True, add_completion=False
)

Output = Annotated[
    Path, typer.Option("--output", "-o", help="Folder for tables, figures and the page.", readable=False)
]
Force = Annotated[bool, typer.Option("--force", help="Replace results of other settings.")]
Page = Annotated[
    Path | None,
    typer.Option("--page", help="Also write the page here, its figures in a folder beside it.", readable=False),
]


def make_command(experiment: Experiment) -> Callable[..., None]:
    """The command of an experiment; typer reads its options from the signature."""

    def command(output: Path, force: bool, page: Path | None, quick: bool = False, **options: int | None) -> None:
        from gradientdice_studies.reproduce import reproduce

        given = {name: value for name, value in options.items() if value is not None}
        own, *others = reproduce(experiment, output, quick=quick, force=force, page=page, options=given)
        typer.echo(f"Wrote {own}, its figures and its tables.")
        for path in others:
            typer.echo(f"Wrote {path}.")

    parameters = _parameters(experiment)
    command.__signature__ = Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__doc__ = experiment.help
    return command


def _parameters(experiment: Experiment) -> list[Parameter]:
    parameters = [_parameter("output", Output, Path("results") / experiment.name)]
    if experiment.quick is not None:
        quick = Annotated[bool, typer.Option("--quick", help=experiment.quick)]
        parameters.append(_parameter("quick", quick, False))
    for option in experiment.options:
        flag = "--" + option.field.replace("_", "-")
        # Without a value the scale's own is used, which with --quick is another one than the default shown.
        declared = typer.Option(flag, help=option.help, show_default=str(option.default), min=option.least)
        parameters.append(_parameter(option.field, Annotated[int | None, declared], None))
    return [*parameters, _parameter("force", Force, False), _parameter("page", Page, None)]


def _parameter(name: str, annotation: Any, default: object) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


for _experiment in EXPERIMENTS.values():
    app.command(_experiment.name)(make_command(_experiment))
