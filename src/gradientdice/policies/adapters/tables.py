"""Tables: one row of probabilities per state, or one action per state."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradientdice.base.arrays import as_numbers
from gradientdice.base.errors import InputError
from gradientdice.policies.adapters.options import Options
from gradientdice.policies.adapters.outputs import one_hot
from gradientdice.policies.tabular import TabularPolicy


def adapt(obj: Any, options: Options) -> TabularPolicy:
    """A table of probabilities as it is; one of actions as probabilities of 0 and 1."""
    options.only("a table", "num_actions", "deterministic")
    _require_plain_labels(obj)
    table = as_numbers("The policy's table", obj)
    if table.ndim == 1 and table.dtype.kind in "iub" and table.size:
        return TabularPolicy(one_hot(table.astype(np.int64), options.num_actions or int(table.max()) + 1))
    if table.ndim != 2:
        raise InputError(
            f"A policy's table has a row of probabilities per state, or one whole number per state, not shape "
            f"{table.shape} of {table.dtype}."
        )
    if options.num_actions not in (None, table.shape[1]):
        raise InputError(f"num_actions is {options.num_actions}, and the table has {table.shape[1]} columns.")
    if options.deterministic:
        return TabularPolicy(one_hot(np.argmax(table, axis=1), table.shape[1]))
    return TabularPolicy(table)


def _require_plain_labels(obj: Any) -> None:
    """Raise if a frame has names for its states or actions: only their places would be read."""
    for axis, what in (("index", "states"), ("columns", "actions")):
        labels = getattr(obj, axis, None)
        if labels is not None and not callable(labels) and list(labels) != list(range(len(labels))):
            raise InputError(
                f"The policy's table has labels for its {what}, such as {next(iter(labels))!r:.40}, which are not "
                "read: rows and columns count by their place, from 0. Sort them as the log's codes are, and give "
                "table.to_numpy()."
            )
