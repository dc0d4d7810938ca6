"""Grids: one program for each structure; parts, devices and neighbours change no number."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import gradientdice as gd
from dice.stochastic.small import group, same
from gradientdice.dice.stochastic.cases import group_cases
from gradientdice.dice.stochastic.grid import collect, run_groups
from gradientdice.dice.stochastic.linear import LinearClass

TESTS = Path(__file__).parents[2]
GRID = [gd.GradientDICE(g, lam) for g in (0.5, 0.9, 1.0) for lam in (0.5, 1.0)] + [gd.GenDICE(0.9), gd.DualDICE(0.9)]
SOLVERS = [gd.PrimalDual(120, rate, record_every=40) for rate in (0.05, 0.1)]


def run(groups, seeds, **options):
    return collect(run_groups(groups, seeds, **options))


def test_numbers_share_a_program_and_structures_do_not():
    cases, functions = [(estimator, solver) for estimator in GRID for solver in SOLVERS], LinearClass(10)
    assert len(group_cases(cases, functions)) == 3
    assert len(group_cases(cases, functions, split_average=True)) == 4
    longer = [(GRID[0], gd.PrimalDual(121, 0.1, record_every=40))]
    assert len(group_cases(cases + longer, functions)) == 4
    ridged = [(gd.GradientDICE(0.9, ridge=0.1), SOLVERS[0])]
    plan, numbers = group_cases(cases + ridged, functions)[0]
    assert plan.with_ridge and len(numbers) == 13


@pytest.mark.slow
def test_a_network_that_diverges_does_not_spoil_the_others():
    (alone,) = run([group("networks", [0.01])], [0, 1])
    (both,) = run([group("networks", [0.01, 1e12])], [0, 1])
    assert (both.diverged_at[0] == -1).all() and (both.diverged_at[1] >= 0).all()
    assert np.array_equal(alone.curve[0], both.curve[0])
    assert np.isinf(both.curve[1, :, -1]).all()
    finite = [np.isfinite(leaf).all() for leaf in jax.tree.leaves(both.players)]
    assert all(finite), "the last finite parameters are given"


@pytest.mark.slow
def test_networks_in_small_parts_are_the_same_grid():
    whole, parts = (run([group("networks", [0.01, 0.02])], range(2), max_bytes=size)[0] for size in (None, 1))
    assert same(whole, parts)


def test_runs_of_one_seed_see_the_same_transitions():
    """A case is the same run whichever cases are beside it, with options that work on whole gradients, too."""
    options: dict[str, Any] = {"clip_norm": 0.5}
    (three,) = run([group("table", [0.01, 0.02, 0.03], **options)], [0, 1])
    (one,) = run([group("table", [0.02], **options)], [1])
    np.testing.assert_allclose(three.curve[1, 1], one.curve[0, 0], rtol=1e-5)


@pytest.mark.parametrize("kind", ["table", pytest.param("networks", marks=pytest.mark.slow)])
def test_the_way_of_accelerators_gives_the_same_numbers(kind, monkeypatch):
    """They advance all runs together, block by block, with records as a program of their own."""
    own = group(kind, [0.01, 0.02])
    (here,) = run([own], [0, 1])
    monkeypatch.setattr("jax.default_backend", lambda: "gpu")
    (there,) = run([own], [0, 1])
    np.testing.assert_allclose(here.curve, there.curve, rtol=1e-4, atol=1e-5)


DEVICES = """
import sys; sys.path.insert(0, {tests!r})
import numpy as np, jax
from dice.stochastic.small import group
from gradientdice.dice.stochastic.grid import collect, run_groups
assert len(jax.devices()) == 3
groups = [group(kind, [0.01, 0.02]) for kind in ("table", "networks")]
table, networks = collect(run_groups(groups, [0, 1]))
np.savez(sys.argv[1], table=table.curve, networks=networks.curve)
"""


@pytest.mark.slow
def test_several_devices_share_a_grid(tmp_path):
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=3"}
    code, output = DEVICES.format(tests=str(TESTS)), tmp_path / "curves.npz"
    subprocess.run([sys.executable, "-c", code, str(output)], env=environment, check=True)
    kinds = ("table", "networks")
    here = run([group(kind, [0.01, 0.02]) for kind in kinds], [0, 1])
    with np.load(output) as found:
        for kind, outcome in zip(kinds, here, strict=True):
            np.testing.assert_allclose(found[kind], outcome.curve, rtol=1e-4, atol=1e-5)
