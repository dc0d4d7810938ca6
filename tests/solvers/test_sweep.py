"""Grids: one program a structure, the same numbers as single runs, any memory bound, provenance."""

import numpy as np
import pytest

import gradientdice as gd
from conftest import random_problem
from gradientdice.functions.design import whole_design
from gradientdice.solvers.cases import group_cases

GRID = [gd.GradientDICE(g, lam) for g in (0.5, 0.9, 1.0) for lam in (0.5, 1.0)] + [gd.GenDICE(0.9), gd.DualDICE(0.9)]
SOLVERS = [gd.PrimalDual(120, rate, record_every=40) for rate in (0.05, 0.1)]


@pytest.fixture(scope="module")
def log():
    mdp, target, data_dist = random_problem(0)
    return mdp.sample(600, data_dist, np.random.default_rng(0)), gd.TabularPolicy(target)


def test_every_combination_is_there_once(log):
    table = gd.sweep(*log, GRID, gd.Tabular(5, 2), SOLVERS, seeds=3, progress=False)
    assert len(table) == len(GRID) * len(SOLVERS) * 3 * 3
    keys = ["estimator", "discount", "norm_penalty", "learning_rate", "seed", "step"]
    assert not table.duplicated(keys).any()
    assert table["value"].notna().all()
    provenance = table.attrs["provenance"]
    assert provenance["seeds"] == [0, 1, 2] and len(provenance["grid"]) == len(GRID) * 2
    assert provenance["versions"]["jax"] != "unknown"


def test_equals_single_runs(log):
    data, policy = log
    table = gd.sweep(data, policy, GRID, gd.Tabular(5, 2), SOLVERS, seeds=[4, 7], progress=False)
    design = whole_design(data, policy, gd.Tabular(5, 2), np.random.default_rng(0))
    for estimator, solver, seed in ((GRID[2], SOLVERS[1], 7), (GRID[6], SOLVERS[0], 4)):
        alone = solver.solve_log(estimator, design, seed=seed)
        rows = table[
            (table["estimator"] == type(estimator).__name__)
            & (table["discount"] == estimator.discount)
            & (table["norm_penalty"] == estimator.norm_penalty)
            & (table["learning_rate"] == solver.learning_rate)
            & (table["seed"] == seed)
        ]
        np.testing.assert_allclose(rows["value"], alone.curve.values, rtol=1e-5, atol=1e-6)


def test_a_tight_memory_bound_changes_no_number(log):
    free = gd.sweep(*log, GRID, gd.Tabular(5, 2), SOLVERS, seeds=5, progress=False)
    tight = gd.sweep(*log, GRID, gd.Tabular(5, 2), SOLVERS, seeds=5, progress=False, max_bytes=4000)
    np.testing.assert_allclose(free["value"], tight["value"], rtol=1e-5, atol=1e-6)


def test_numbers_share_a_program_and_structures_do_not():
    cases = [(estimator, solver) for estimator in GRID for solver in SOLVERS]
    assert len(group_cases(cases)) == 3
    assert len(group_cases(cases, split_average=True)) == 4
    longer = [(GRID[0], gd.PrimalDual(121, 0.1, record_every=40))]
    assert len(group_cases(cases + longer)) == 4
    ridged = [(gd.GradientDICE(0.9, ridge=0.1), SOLVERS[0])]
    plan, numbers = group_cases(cases + ridged)[0]
    assert plan.with_ridge and len(numbers) == 13


def test_average_reward_with_termination_runs_beside_discounted(log):
    data, policy = log
    ended = np.zeros(600, dtype=bool)
    ended[::10] = True
    log2 = gd.Transitions(
        data.states, data.actions, data.rewards, data.next_states, data.initial_states, terminated=ended
    )
    table = gd.sweep(
        log2,
        policy,
        [gd.GradientDICE(0.9), gd.GradientDICE(1.0)],
        gd.Tabular(5, 2),
        gd.PrimalDual(20_000, 0.05),
        seeds=4,
        progress=False,
    )
    last = table[table["step"] == 20_000].groupby("discount")["value"].mean()
    moments = gd.Moments.from_transitions(log2, policy, gd.Tabular(5, 2))
    for discount in (0.9, 1.0):
        exact = gd.solve(gd.GradientDICE(discount), moments).ratio_params @ moments.for_discount(discount).reward
        assert last[discount] == pytest.approx(exact, abs=0.1)


def test_linear_features_sweep(log):
    features = gd.LinearFeatures(lambda s, a: np.column_stack([s / 5, a, s * a / 5]))
    table = gd.sweep(
        *log, [gd.GradientDICE(0.5)], [gd.Tabular(5, 2), features], gd.PrimalDual(2000, 0.1), seeds=2, progress=False
    )
    assert set(table["functions"]) == {"Tabular", "LinearFeatures"}


@pytest.mark.parametrize("arguments", [{"seeds": 0}, {"seeds": []}, {"estimators": []}])
def test_empty_sweeps_are_refused(log, arguments):
    given = {"estimators": GRID, "functions": gd.Tabular(5, 2), "solver": SOLVERS, "progress": False, **arguments}
    with pytest.raises(gd.InputError):
        gd.sweep(*log, **given)
