"""Every family of logs, one module for each kind of trap."""

from __future__ import annotations

from gradientdice.experiments.traps.families import ending, honest, unlogged
from gradientdice.experiments.traps.family import Family


def families() -> dict[str, Family]:
    """Name -> family, the honest ones first."""
    found = [*honest.families(), *ending.families(), *unlogged.families()]
    assert len({family.name for family in found}) == len(found), "each family has a name of its own"
    return {family.name: family for family in found}
