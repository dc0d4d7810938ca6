"""Small typed helpers over pandas, whose own types do not say whether a selection is a table, a column or a number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd


def column(frame: pd.DataFrame, name: str) -> pd.Series:
    """One column."""
    found = frame[name]
    assert isinstance(found, pd.Series)
    return found


def kept(frame: pd.DataFrame, mask: Any) -> pd.DataFrame:
    """The rows where the mask is true."""
    found = frame.loc[np.asarray(mask, dtype=bool)]
    assert isinstance(found, pd.DataFrame)
    return found


def rows_where(frame: pd.DataFrame, **values: Any) -> pd.DataFrame:
    """The rows whose columns have these values; a NaN equals a NaN."""
    mask = np.ones(len(frame), dtype=bool)
    for name, value in values.items():
        found = column(frame, name)
        mask &= (found.isna() if pd.isna(value) else found == value).to_numpy(dtype=bool)
    return kept(frame, mask)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows, each as a dictionary."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def groups(frame: pd.DataFrame, *names: str) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """The rows with the same values in these columns, in the order in which the values first appear."""
    for values, rows in frame.groupby(list(names), sort=False, dropna=False):
        assert isinstance(values, tuple)
        yield values, rows
