"""Every family of logs, one module for each kind of trap."""

from __future__ import annotations

from gradientdice.experiments.traps.families import honest, small, starts, tails
from gradientdice.experiments.traps.family import Family


def families() -> dict[str, Family]:
    """Name -> family, the honest ones first."""
    found = [*honest.families(), *tails.families(), *starts.families(), *small.families()]
    assert len({family.name for family in found}) == len(found), "each family has a name of its own"
    return {family.name: family for family in found}
