"""Values by d3rlpy's fitted Q evaluation, from the table that `benchmarks/d3rlpy_ranking.py` wrote.

d3rlpy pins an old Gymnasium and has an environment of its own, so that its values come as a file.
"""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

import pandas as pd

KEYS = ["case", "seed", "policy"]


def with_d3rlpy(frame: pd.DataFrame, table: Traversable | None = None) -> pd.DataFrame:
    """The run's table with a column `fitted`: d3rlpy's values, empty for the logs that it was not given.

    Args:
        frame: the run's table.
        table: d3rlpy's; by default the one that comes with the package, if there is one.
    """
    place = table or files("gradientdice_studies.ranking").joinpath("data/d3rlpy.csv")
    if not place.is_file():
        return frame.assign(fitted=float("nan"))
    with place.open(encoding="utf-8") as source:
        values = pd.read_csv(source)
    fitted = pd.DataFrame({**{name: values[name] for name in KEYS}, "fitted": values["value"]})
    return frame.merge(fitted, on=KEYS, how="left")
