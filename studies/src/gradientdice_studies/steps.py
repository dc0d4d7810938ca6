"""What an experiment consists of: its scales, a run that writes tables, figures from the tables, and the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from gradientdice_studies.store import ResultStore

ScaleType = TypeVar("ScaleType")
ResultsType = TypeVar("ResultsType")
ScaleIn = TypeVar("ScaleIn", contravariant=True)
ResultsOut = TypeVar("ResultsOut", covariant=True)


class Run(Protocol[ScaleIn, ResultsOut]):
    """Runs what is missing in a folder and returns all results."""

    def __call__(self, folder: Path, scale: ScaleIn, *, force: bool = False) -> tuple[ResultStore, ResultsOut]:
        """Runs, with `force` also in a folder that has results of other settings."""
        ...


def no_figures(store: ResultStore, results: object) -> dict[str, Path]:
    """For an experiment whose page has only tables."""
    return {}


@dataclass(frozen=True)
class Steps(Generic[ScaleType, ResultsType]):
    """An experiment.

    Attributes:
        full: the scale of the committed page.
        run: computes the results and writes the tables.
        context: the numbers, tables and phrases of the page, by their names in its template.
        quick: a small scale; None if the full one is quick.
        draw: writes the figures; name -> PNG.
    """

    full: ScaleType
    run: Run[ScaleType, ResultsType]
    context: Callable[[ResultsType, ScaleType], Mapping[str, Any]]
    quick: ScaleType | None = None
    draw: Callable[[ResultStore, ResultsType], dict[str, Path]] = no_figures
