"""Libraries that are not always installed: imported when needed, with an error that names the extra."""

from __future__ import annotations

import importlib
from typing import Any

from gradientdice.base.errors import InputError


def optional(module: str, extra: str) -> Any:
    """The module; an error that says how to install it if it is not there."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        library = module.split(".")[0]
        raise InputError(
            f"This needs {library}, which could not be imported ({str(error).splitlines()[0][:120]}): "
            f"pip install 'gradientdice[{extra}]'."
        ) from error


def frameworks_of(obj: object) -> list[str]:
    """The libraries that an object's class and its bases come from, nearest first; none of them is imported."""
    found = [base.__module__.partition(".")[0] for base in type(obj).__mro__]
    return list(dict.fromkeys(found))
