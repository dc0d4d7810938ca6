"""Families of logs that lack steps or outcomes, and of episodes that end: what they promise, and one log of each kind."""

import numpy as np
import pytest

from gradientdice.problem.problem import Problem
from gradientdice_studies.traps.families import ending, families, unlogged
from gradientdice_studies.traps.run import judged
from problems import known

TABLES = [family for family in unlogged.families() if family.half == "develop"]


@pytest.mark.parametrize("family", [family for family in TABLES if "unlogged" in family.name], ids=lambda f: f.name)
def test_the_logs_lack_steps(family):
    cases = [family.log(np.random.default_rng(seed)) for seed in range(5)]
    shares = [Problem(case.data, case.policy).unlogged(family.discount) or 0.0 for case in cases]
    assert 0 < np.mean(shares) < 0.05


@pytest.mark.parametrize("family", TABLES, ids=lambda family: family.name)
def test_trust_goes_with_an_interval_that_holds_the_truth(family):
    """Without a widening none of the intervals on grids held it at discount 1."""
    truth = family.truth()
    rows = [judged(family.name, seed, truth) for seed in range(5)]
    assert sum(bool(row["inside"]) for row in rows) >= 4


def test_the_value_of_a_walk_is_as_small_as_its_mass_on_the_rows():
    (family,) = [family for family in ending.families() if family.name.startswith("walk, γ")]
    case = family.log(np.random.default_rng(0))
    longest = np.unique(known(case.data.episodes), return_counts=True)[1].max()
    assert 0 < family.truth() < (1 - family.discount) * longest
    assert case.data.ended.any() and len(case.data) == 1_500


def test_both_kinds_are_registered_in_both_halves():
    found = families().values()
    for trap in (unlogged.TRAP, ending.TRAP):
        assert {family.half for family in found if family.trap == trap} == {"develop", "report"}
