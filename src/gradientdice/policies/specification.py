"""A policy as a command line names it: a Python object, a table in a file, or columns of the log itself."""

from __future__ import annotations

import importlib
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np

from gradientdice.base.errors import InputError
from gradientdice.log.files import read_columns
from gradientdice.log.files.reading import nearest, reason
from gradientdice.log.files.table import SUFFIXES, read_table
from gradientdice.policies import LoggedPolicy, Policy, TabularPolicy
from gradientdice.policies.adapters import policy

NEXT = ("next_probabilities", "next_actions")
COLUMNS = ("next_probabilities", "initial_probabilities", "next_actions", "initial_actions")


def load_policy(specification: str, log: Path | None, rows: np.ndarray | None = None) -> Policy:
    """The policy that a specification names.

    Args:
        specification: `module:name` (a policy, or what `gradientdice.policy` makes one of; the current folder is
            searched too), a .csv, .npy or .npz file with a (states, actions) table, or `columns` for the log's own
            columns next_probabilities and initial_probabilities (or next_actions and initial_actions).
        log: the log's file, for `columns`; None for one that is not read into memory.
        rows: which rows of the file the log has, in its order; None for all as they are.
    """
    if specification == "columns":
        if log is None:
            raise InputError(
                "--policy columns has a row per transition, and a scanned log is not in memory: give the policy as "
                "module:name, or as a table."
            )
        found, present = read_columns(log, {name: name for name in COLUMNS})
        if not found:
            raise InputError(f"{log} has none of the policy's columns {list(COLUMNS)}; {nearest(COLUMNS[0], present)}.")
        if "next_probabilities" not in found and "next_actions" not in found:
            raise InputError(f"{log} has {sorted(found)} but neither next_probabilities nor next_actions.")
        return LoggedPolicy(
            **{name: array[rows] if rows is not None and name in NEXT else array for name, array in found.items()}
        )
    if Path(specification).suffix in SUFFIXES:
        return _tabular(Path(specification), log)
    if ":" in specification:
        return _object(*specification.split(":", 1))
    raise InputError(
        f"--policy {specification!r}: give module:name, a table as a .csv, .npy or .npz file, or the word columns."
    )


def _tabular(path: Path, log: Path | None) -> TabularPolicy:
    """A table by states; one with a row for each transition is told from it where the log's states are no numbers."""
    table = read_table(path)
    states = None
    if log is None:
        return TabularPolicy(table)
    with suppress(InputError):  # logs of other kinds are read elsewhere
        states = read_columns(log, {"states": "states"})[0].get("states")
    if states is not None and len(table) == len(states) and (states.ndim != 1 or states.dtype.kind not in "iu"):
        raise InputError(
            f"{path} has a row for each of the log's {len(table)} transitions, and a table has one for each state. Put "
            "the probabilities into the log as next_probabilities (and initial_probabilities), with --policy columns."
        )
    return TabularPolicy(table)


def _object(module: str, name: str) -> Policy:
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise InputError(f"--policy: there is no module {error.name!r} here or on the Python path.") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever the module does when it is imported, an exit too
        raise InputError(
            f"--policy: the module {module!r} could not be imported ({type(error).__name__}: {reason(error)})."
        ) from error
    if not hasattr(imported, name):
        raise InputError(f"--policy: the module {module!r} has no {name!r}.")
    try:
        return policy(getattr(imported, name))
    except InputError as error:
        raise InputError(f"--policy: {module}:{name} is no policy. {error}") from error
