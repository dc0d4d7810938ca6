"""`sweep`: the same numbers as single runs, any memory bound, provenance, a user's own classes, refusals."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import gradientdice as gd
from dice.stochastic.small import one_hot_log, table_log
from problems import known

GRID = [gd.GradientDICE(g, lam) for g in (0.5, 0.9, 1.0) for lam in (0.5, 1.0)] + [gd.GenDICE(0.9), gd.DualDICE(0.9)]
SOLVERS = [gd.PrimalDual(120, rate, record_every=40) for rate in (0.05, 0.1)]


def swept(log: tuple[gd.Transitions, Any], estimators: Any, functions: Any, solver: Any, **options: Any) -> Any:
    data, policy = log
    return gd.sweep(data, policy, estimators, functions, solver, progress=False, **options)


@pytest.fixture(scope="module")
def log():
    return table_log()


@pytest.fixture(scope="module")
def table(log):
    return swept(log, GRID, gd.Tabular(5, 2), SOLVERS, seeds=[0, 4, 7])


def test_every_combination_is_there_once(table):
    assert len(table) == len(GRID) * len(SOLVERS) * 3 * 3
    keys = ["estimator", "discount", "norm_penalty", "learning_rate", "seed", "step"]
    assert not table.duplicated(keys).any()
    assert table["value"].notna().all() and table["mean_ratio"].notna().all()
    provenance = table.attrs["provenance"]
    assert provenance["seeds"] == [0, 4, 7] and len(provenance["grid"]) == len(GRID) * 2
    assert provenance["versions"]["jax"] != "unknown"


def test_equals_single_runs(log, table):
    data, policy = log
    for estimator, solver, seed in ((GRID[2], SOLVERS[1], 7), (GRID[6], SOLVERS[0], 4)):
        alone = solver.fit(estimator, gd.Problem(data, policy, gd.Tabular(5, 2), seed=seed))
        rows = table[
            (table["estimator"] == type(estimator).__name__)
            & (table["discount"] == estimator.discount)
            & (table["norm_penalty"] == getattr(estimator, "norm_penalty", None))
            & (table["learning_rate"] == solver.learning_rate)
            & (table["seed"] == seed)
        ]
        np.testing.assert_allclose(rows["value"], known(alone.solution.curve).values, rtol=1e-5, atol=1e-6)
        assert rows["mean_ratio"].iloc[-1] == pytest.approx(alone.mean_ratio, rel=1e-5)


@pytest.mark.slow
def test_a_tight_memory_bound_changes_no_number(log, table):
    tight = swept(log, GRID, gd.Tabular(5, 2), SOLVERS, seeds=[0, 4, 7], max_bytes=10_000)
    np.testing.assert_allclose(table["value"], tight["value"], rtol=1e-5, atol=1e-6)


def test_a_diverging_run_does_not_touch_its_neighbours(log, table):
    good, bad = SOLVERS[0], gd.PrimalDual(120, 50.0, record_every=40)
    own = (table["estimator"] == "GradientDICE") & (table["discount"] == 0.9) & (table["norm_penalty"] == 1.0)
    alone = table[own & (table["learning_rate"] == good.learning_rate)]
    both = swept(log, gd.GradientDICE(0.9), gd.Tabular(5, 2), [good, bad], seeds=[0, 4, 7])
    same = both[both["learning_rate"] == good.learning_rate]
    assert len(same) == len(alone) == 3 * 3
    np.testing.assert_allclose(same["value"], alone["value"], atol=1e-4)  # float32 sums, in another order
    assert (both[both["learning_rate"] == 50.0]["status"] == "diverged").all()
    assert not both["value"].isna().any()


@pytest.mark.slow
def test_average_reward_with_termination_runs_beside_discounted(log):
    data, policy = log
    ended = np.zeros(600, dtype=bool)
    ended[::10] = True
    log2 = gd.Transitions(
        data.states, data.actions, data.rewards, data.next_states, data.initial_states, terminated=ended
    )
    table = swept(
        (log2, policy),
        [gd.GradientDICE(0.9), gd.GradientDICE(1.0)],
        gd.Tabular(5, 2),
        gd.PrimalDual(20_000, 0.05),
        seeds=4,
    )
    last = table[table["step"] == 20_000].groupby("discount")["value"].mean().to_dict()
    moments = gd.Moments.from_transitions(log2, policy, gd.Tabular(5, 2))
    for discount in (0.9, 1.0):
        exact = gd.solve(gd.GradientDICE(discount), moments).ratio_params @ moments.for_discount(discount).reward
        assert last[discount] == pytest.approx(exact, abs=0.1)


@pytest.mark.slow
def test_linear_features_run_beside_a_table(log):
    features = gd.LinearFeatures(lambda s, a: np.column_stack([s / 5, a, s * a / 5]))
    solver, both = gd.PrimalDual(2000, 0.1), [gd.Tabular(5, 2), features]
    table = swept(log, [gd.GradientDICE(0.5)], both, solver, seeds=2)
    assert list(table.groupby("functions_number")["functions"].first()) == ["Tabular", "LinearFeatures"]
    fit = solver.fit(gd.GradientDICE(0.5), gd.Problem(log[0], log[1], features, seed=1))
    last = table[(table["functions_number"] == 1) & (table["seed"] == 1)]["value"].iloc[-1]
    assert last == pytest.approx(fit.value, rel=1e-5)


@pytest.mark.slow
def test_networks_say_where_the_mean_ratio_starts():
    _, _, data, policy = one_hot_log(300)
    solver = gd.PrimalDual(20, 0.01, 16, record_every=10)
    shapes = [gd.MLP((16,), output_scale=1e-3, ratio_start=0.0), gd.MLP((16,))]
    table = gd.sweep(data, policy, [gd.GradientDICE(0.5)], shapes, solver, seeds=2, progress=False)
    assert len(table) == 2 * 2 * 3 and np.isfinite(table["value"]).all()
    first = [table[(table["step"] == 0) & (table["functions"] == repr(shape))]["mean_ratio"] for shape in shapes]
    np.testing.assert_allclose(first[0], 0, atol=0.01)
    np.testing.assert_allclose(first[1].mean(), 1, atol=0.5)


@dataclass(frozen=True)
class Mine:
    """GradientDICE with λ = 1, as a user would write it."""

    discount: float
    ridge: float = 0.0
    ratio_minimises = True

    def ratio(self, raw):
        return raw

    def objective(self, terms):
        tau, f, f_next, f_initial, eta = terms
        flow = (1 - self.discount) * f_initial + self.discount * tau * f_next - tau * f - 0.5 * f**2
        return flow + eta * tau - eta - 0.5 * eta**2


class Plain:
    """The same without a dataclass, with a setting that has no hash."""

    ratio_minimises = True

    def __init__(self, discount, ridge=0.0):
        self.discount, self.ridge, self.scale = discount, ridge, np.ones(2)

    ratio, objective = Mine.ratio, Mine.objective


class Computed:
    """The same with properties in place of attributes."""

    def __init__(self, horizon):
        self._horizon = horizon

    discount = property(lambda self: 1 - 1 / self._horizon)
    ridge = property(lambda self: 0.0)
    ratio_minimises = property(lambda self: True)
    ratio, objective = Mine.ratio, Mine.objective


class Branching(Plain):
    """The same with an objective that asks for its discount."""

    def objective(self, terms):
        if self.discount == 1:
            return Mine(self.discount).objective(terms._replace(initial_critic=0.0 * terms.initial_critic))
        return Mine(self.discount).objective(terms)


BRIEF = gd.PrimalDual(20, 0.05, 8, record_every=10)
KINDS = {"table": gd.Tabular(5, 2), "networks": gd.MLP((4,))}


@pytest.fixture(scope="module")
def of_the_library(log):
    both = [gd.GradientDICE(0.5), gd.GradientDICE(0.9)]
    return cache(lambda kind: swept(log, both, KINDS[kind], BRIEF, seeds=2))


@pytest.mark.parametrize(
    ("own", "kind"),
    [
        pytest.param([Mine(0.5), Mine(0.9)], "table", marks=pytest.mark.slow),
        ([Plain(0.5), Plain(0.9)], "table"),
        pytest.param([Plain(0.5), Plain(0.9)], "networks", marks=pytest.mark.slow),
        pytest.param([Computed(2.0), Computed(10.0)], "table", marks=pytest.mark.slow),
        ([Branching(0.5), Branching(0.9)], "table"),
    ],
    ids=["dataclass", "plain class", "plain class with networks", "properties", "branching"],
)
def test_a_users_own_class_is_taken_by_its_protocol(log, of_the_library, own, kind):
    mine, theirs = swept(log, own, KINDS[kind], BRIEF, seeds=2), of_the_library(kind)
    assert set(mine["estimator"]) == {type(own[0]).__name__}
    for column in ("value", "mean_ratio"):
        np.testing.assert_allclose(mine[column], theirs[column], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(mine["discount"], theirs["discount"])


def test_a_users_own_class_goes_on_from_a_checkpoint(log, tmp_path):
    def values(estimator):
        table = swept(log, estimator, gd.Tabular(5, 2), BRIEF, seeds=2, checkpoint=tmp_path)
        return table["value"].tolist()

    assert values(Plain(0.5)) == values(Plain(0.5))
    with pytest.raises(gd.InputError, match="other settings"):
        values(Plain(0.6))


class Untraceable(Plain):
    def objective(self, terms):
        return jnp.asarray(np.asarray(terms.ratio) * 2.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"seeds": 0}, "seeds must be at least 1"),
        ({"seeds": []}, "seeds must not be empty"),
        ({"seeds": "12"}, "seeds must be a whole number or a list"),
        ({"seeds": [1.5]}, "seeds must be a whole number"),
        ({"seeds": True}, "seeds must be a whole number"),
        ({"seeds": [0, -1]}, "seeds must be at least 0"),
        ({"seeds": 2.0}, "seeds must be a whole number"),
        ({"seeds": [2**33]}, "(?i)seeds must be whole numbers below"),
        ({"estimators": []}, "estimators must not be empty"),
        ({"estimators": gd.GradientDICE}, "estimators must be saddle objectives"),
        ({"estimators": [gd.GradientDICE(0.9), 0.9]}, "estimators must be saddle objectives.*not 0.9"),
        ({"estimators": gd.LSTDQ(0.9)}, "estimators must be saddle objectives"),
        ({"estimators": Plain(1.5)}, "estimators: discount must lie in"),
        ({"estimators": Plain(0.5, -1.0)}, "estimators: ridge must lie in"),
        ({"estimators": Untraceable(0.5)}, "JAX cannot differentiate the objective of Untraceable"),
        ({"estimators": gd.GradientDICE(0.9, norm_penalty=np.inf)}, "norm_penalty=inf is for ClosedForm"),
        ({"functions": []}, "functions must not be empty"),
        ({"functions": None}, "functions must be"),
        ({"functions": "table"}, "functions must be"),
        ({"solver": gd.ClosedForm()}, "solver must be PrimalDual"),
        ({"solver": [gd.PrimalDual(10), 10]}, "solver must be PrimalDual.*not 10"),
        ({"solver": gd.PrimalDual(10, checkpoint=Path("folder"))}, "checkpoint=folder"),
    ],
)
def test_arguments_of_the_wrong_kind_are_refused_by_name(log, arguments, words):
    given = {"estimators": GRID[0], "functions": gd.Tabular(5, 2), "solver": SOLVERS[0], "seeds": 1, **arguments}
    with pytest.raises(gd.InputError, match=words):
        swept(log, **given)


def test_actions_that_were_never_logged_are_refused(log):
    """Networks and features would extrapolate to them unseen; a table leaves them out."""
    data, _ = log
    always = gd.Transitions(data.states, 0 * data.actions, data.rewards, data.next_states, data.initial_states)
    other = gd.TabularPolicy(np.tile([0.0, 1.0], (5, 1)))
    for functions in (gd.MLP((4,)), gd.LinearFeatures(lambda s, a: np.column_stack([s, a]))):
        with pytest.raises(gd.InputError, match="action 1, which the log never contains"):
            gd.sweep(always, other, GRID[0], functions, SOLVERS[0], seeds=1, progress=False)


def test_a_row_is_not_to_be_trusted_where_its_figures_say_so(log):
    """A run that diverges, ratios that do not average to 1, steps that were never logged; never more than caution."""
    data, policy = log
    solvers = [gd.PrimalDual(2000, rate, record_every=500) for rate in (0.05, 1e-6, 50.0)]
    table = swept(log, gd.GradientDICE(0.9), gd.Tabular(5, 2), solvers, seeds=1)
    off = (table["mean_ratio"] - 1).abs()
    failed = (table["status"] == "diverged") | ~(off <= 0.25)
    assert (table["verdict"] == np.where(failed, "do not trust", "caution")).all()
    last = table[table["step"] == 2000].set_index("learning_rate")["verdict"].to_dict()
    assert last == {0.05: "caution", 1e-6: "do not trust", 50.0: "do not trust"}
    some = gd.Transitions(
        data.states, np.where(data.states < 4, 0, data.actions), data.rewards, data.next_states, data.initial_states
    )
    lacking = swept((some, policy), gd.GradientDICE(0.9), gd.Tabular(5, 2), solvers[0], seeds=1)
    assert (lacking["unlogged"] > 0.05).all() and (lacking["verdict"] == "do not trust").all()


def test_a_table_says_how_much_was_never_logged(log):
    """The same share as the verdict of `evaluate` reads."""
    data, policy = log
    some = gd.Transitions(
        data.states, np.where(data.states == 2, 0, data.actions), data.rewards, data.next_states, data.initial_states
    )
    for discount in (0.5, 0.9):
        table = swept((some, policy), gd.GradientDICE(discount), gd.Tabular(5, 2), SOLVERS[0], seeds=1)
        diagnostics = gd.evaluate(some, policy, discount=discount).diagnostics
        assert diagnostics is not None and diagnostics.unlogged is not None
        assert 0.01 < diagnostics.unlogged < 0.5
        np.testing.assert_allclose(table["unlogged"], diagnostics.unlogged, rtol=1e-12)
    whole = swept(log, gd.GradientDICE(0.5), gd.Tabular(5, 2), SOLVERS[0], seeds=1)
    assert (whole["unlogged"] == 0).all()
