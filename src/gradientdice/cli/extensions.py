"""Commands of other packages: entry points in the group `gradientdice.commands`, each a typer app.

Only the command that is called is imported, and all of them for `gradientdice --help`.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperGroup

from gradientdice.base.errors import InputError

GROUP = "gradientdice.commands"
# The commands of packages that may not be installed.
ELSEWHERE = {
    "reproduce": "The studies that `gradientdice reproduce` runs are a package of their own: "
    "pip install gradientdice-studies, or, in a checkout of the repository, pip install ./studies."
}


class Commands(TyperGroup):
    """The library's own commands, then those of other packages."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of all commands that are installed."""
        own = super().list_commands(ctx)
        return [*own, *sorted(installed().keys() - set(own))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name; None if there is none."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        entry = installed().get(cmd_name)
        if entry is not None:
            command = typer.main.get_command(entry.load())
            command.name = cmd_name
            return command
        if cmd_name in ELSEWHERE:
            raise InputError(ELSEWHERE[cmd_name])
        return None


def installed() -> dict[str, EntryPoint]:
    """Name -> entry point of each command of another package."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}
