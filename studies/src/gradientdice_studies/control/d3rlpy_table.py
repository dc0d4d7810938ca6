"""Fitted Q evaluation by d3rlpy, from the table that `benchmarks/d3rlpy_fqe.py` wrote in an environment of its own."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

import pandas as pd

from gradientdice_studies.control.methods import methods
from gradientdice_studies.frames import column, kept

METHOD = "FQE of d3rlpy"
# By how long it was trained: as long as ours, and as long as an example of its documentation does.
NAMES = {10_000: METHOD, 100_000: f"{METHOD}, 100,000 updates"}
# What a log's rows say about the log, whatever the method.
OF_THE_LOG = ["task", "rows", "seed", "discount", "half", "truth", "true_behavior", "running_error", "episodes"]


def d3rlpy_rows(frame: pd.DataFrame, table: Traversable | None = None) -> pd.DataFrame:
    """Its values for those logs of a run that it was given, in the columns of the run; it has no intervals.

    Args:
        frame: the run's table.
        table: d3rlpy's; by default the one that comes with the package, if there is one.
    """
    place = table or files("gradientdice_studies.control").joinpath("data/d3rlpy.csv")
    if not place.is_file():
        return frame.iloc[:0]
    with place.open(encoding="utf-8") as source:
        values = pd.read_csv(source)
    found = pd.DataFrame(frame[OF_THE_LOG]).drop_duplicates().merge(values, on=["task", "rows", "seed", "discount"])
    found = found.assign(method=column(found, "updates").map(NAMES), verdict="", decision="undecided", note="")
    found = found.reindex(columns=frame.columns)
    return kept(found, column(found, "value").notna())


def all_methods(frame: pd.DataFrame, table: Traversable | None = None) -> pd.DataFrame:
    """The run's answers and d3rlpy's, by size, discount and method, the default first."""
    both = pd.concat([frame, d3rlpy_rows(frame, table)], ignore_index=True)
    order = [*methods(), *NAMES.values()]
    place = column(both, "method").map(order.index)
    return both.assign(place=place).sort_values(["rows", "discount", "place"], kind="stable").drop(columns="place")
