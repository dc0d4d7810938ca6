"""Every family of logs, one module for each kind of trap."""

from __future__ import annotations

from functools import cache

from gradientdice_studies.traps.families import (
    copies,
    ending,
    hidden,
    honest,
    markov_honest,
    shifted,
    slips,
    small,
    starts,
    tails,
    unlogged,
    weighted,
    worlds,
)
from gradientdice_studies.traps.family import Family

TRAPS = (hidden, shifted, weighted, copies, tails, starts, small, unlogged, ending, slips, worlds)


@cache
def families() -> dict[str, Family]:
    """Name -> family, the honest ones first."""
    found = [family for module in (honest, markov_honest, *TRAPS) for family in module.families()]
    assert len({family.name for family in found}) == len(found), "each family has a name of its own"
    return {family.name: family for family in sorted(found, key=lambda family: family.trap != "honest")}
