"""A policy as a command line names it: a Python object, a table in a file, or columns of the log itself."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np

from gradientdice.data.files import read_columns
from gradientdice.errors import InputError
from gradientdice.policies import DiscretePolicy, LoggedPolicy, Policy, SamplingPolicy, TabularPolicy

COLUMNS = ("next_probabilities", "initial_probabilities", "next_actions", "initial_actions")


def load_policy(specification: str, log: Path) -> Policy:
    """The policy that a specification names.

    Args:
        specification: `module:name` (a policy object; the current folder is searched too), a .csv, .npy or .npz file
            with a (states, actions) table, or `columns` for the log's own columns next_probabilities and
            initial_probabilities (or next_actions and initial_actions).
        log: the log's file, for `columns`.
    """
    if specification == "columns":
        found, present = read_columns(log, {name: name for name in COLUMNS})
        if not found:
            raise InputError(f"{log} has none of the policy's columns {list(COLUMNS)}; it has {sorted(present)}.")
        return LoggedPolicy(**found)
    if Path(specification).suffix in (".csv", ".npy", ".npz"):
        return TabularPolicy(_table(Path(specification)))
    if ":" in specification:
        return _object(*specification.split(":", 1))
    raise InputError(
        f"--policy {specification!r}: give module:name, a table as a .csv, .npy or .npz file, or the word columns."
    )


def _table(path: Path) -> np.ndarray:
    if not path.is_file():
        raise InputError(f"There is no policy file {path}.")
    try:
        if path.suffix == ".csv":
            return np.atleast_2d(np.loadtxt(path, delimiter=",", comments="#"))
        loaded = np.load(path, allow_pickle=False)
        return loaded if isinstance(loaded, np.ndarray) else loaded[loaded.files[0]]
    except (ValueError, OSError, IndexError) as error:
        raise InputError(f"{path} is not a table of numbers, one row per state ({error}).") from error


def _object(module: str, name: str) -> Policy:
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise InputError(f"--policy: there is no module {error.name!r} here or on the Python path.") from error
    except AttributeError as error:
        raise InputError(f"--policy: the module {module!r} has no {name!r}.") from error
    if not isinstance(found, (TabularPolicy, DiscretePolicy, SamplingPolicy, LoggedPolicy)):
        raise InputError(
            f"--policy: {module}:{name} is a {type(found).__name__}; "
            "it must be a TabularPolicy, DiscretePolicy or SamplingPolicy."
        )
    return found
