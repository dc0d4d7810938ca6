"""Runs an experiment and writes its tables, figures and results page."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gradientdice.base.atomic import make_folder, write_atomically
from gradientdice.base.errors import InputError
from gradientdice_studies.pages import render
from gradientdice_studies.registry import Experiment


def reproduce(
    experiment: Experiment,
    folder: Path,
    *,
    quick: bool = False,
    force: bool = False,
    page: Path | None = None,
    options: Mapping[str, int] | None = None,
) -> list[Path]:
    """Runs what is missing in the folder, draws the figures and writes the page.

    Args:
        experiment: an entry of the registry.
        folder: for tables, figures and the page. A run that was interrupted continues there.
        quick: at the small scale.
        force: replaces results of other settings.
        page: where else to write the page; its figures are copied to a folder beside it.
        options: fields of the scale with other values.

    Returns:
        The pages that were written.
    """
    steps = experiment.load()
    scale = steps.quick if quick else steps.full
    if scale is None:
        raise InputError(f"{experiment.name} has no quick version: it takes seconds. Run it without quick.")
    scale = replace(scale, **(options or {}))
    store, results = steps.run(folder, scale, force=force)
    figures = steps.draw(store, results)
    context = steps.context(results, scale)

    own = folder / f"{experiment.package}.md"
    _write(own, render(experiment.package, context, {name: path.name for name, path in figures.items()}))
    if page is None:
        return [own]
    write_page(experiment, page, context, figures)
    return [own, page]


def write_page(experiment: Experiment, page: Path, context: Mapping[str, Any], figures: Mapping[str, Path]) -> None:
    """Writes a results page, with copies of its figures in a folder beside it.

    Args:
        experiment: an entry of the registry.
        page: the page.
        context: the values of its template's names.
        figures: name -> PNG.
    """
    beside = page.with_suffix("")
    make_folder(page.parent)
    for path in figures.values():
        make_folder(beside)
        write_atomically(beside / path.name, lambda place, path=path: shutil.copyfile(path, place))
    links = {name: f"{beside.name}/{path.name}" for name, path in figures.items()}
    _write(page, render(experiment.package, context, links))


def _write(path: Path, text: str) -> None:
    write_atomically(path, lambda place: place.write_text(text, encoding="utf-8"))
