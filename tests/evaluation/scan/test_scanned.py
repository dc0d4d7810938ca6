"""A scanned log gives the answer of the same log in memory, wherever its files, row groups and batches are cut."""

from typing import Any

import numpy as np
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradientdice as gd
from gradientdice.log.scanning import opening as log_module
from gradientdice.log.scanning.log import ScannedLog
from problems import known
from scans import as_function, as_table, features, same, small_table, with_fields, written

TABLE, TARGET = small_table()
NOISY, _ = small_table(noise=1.0)
RNG = np.random.default_rng(0)
WEIGHTS = np.where(RNG.random(len(TABLE)) < 0.1, 0.0, RNG.random(len(TABLE)))


def independent(data: gd.Transitions) -> gd.Transitions:
    return with_fields(data, episodes=None, initial_states=data.start_states)


LOGS = {
    "episodes": TABLE,
    "noisy": NOISY,
    "weights": with_fields(TABLE, weights=WEIGHTS),
    "noisy weights": with_fields(NOISY, weights=WEIGHTS),
    "independent rows": independent(TABLE),
    "noisy independent rows": independent(NOISY),
    "independent rows with weights": with_fields(independent(NOISY), weights=WEIGHTS),
    "episodes in no order": with_fields(NOISY, episodes=RNG.permutation(40)[NOISY.episodes]),
    "nothing ends": with_fields(NOISY, terminated=np.zeros(len(NOISY), dtype=bool)),
    "no ends are recorded": with_fields(NOISY, terminated=None),
    "episodes and initial states": with_fields(NOISY, initial_states=NOISY.start_states),
}


def interleaved(data: gd.Transitions) -> gd.Transitions:
    """All first steps, then all second ones, and so on: no episode is in one piece."""
    episodes = known(data.episodes)
    step = np.arange(len(data)) - data.first_rows[episodes]
    order = np.argsort(step, kind="stable")
    names = ("states", "actions", "rewards", "next_states", "terminated", "episodes")
    return with_fields(data, **{name: getattr(data, name)[order] for name in names})


LOGS["interleaved episodes"] = interleaved(NOISY)


def scanned(folder, data, batch_rows=37, cuts=(100, 201), group=50) -> ScannedLog:
    # Some of these logs have the rows of an episode in several files, and none has two episodes of one number.
    how = "across files" if len(cuts) and data.episodes is not None else None
    return gd.scan(written(folder / "log", data, cuts, group), batch_rows=batch_rows, episodes=how)


@pytest.mark.parametrize("discount", [0.9, 1.0])
@pytest.mark.parametrize("name", LOGS)
def test_a_table_is_answered_as_in_memory(tmp_path, name, discount):
    data = LOGS[name]
    found = gd.evaluate(scanned(tmp_path, data), TARGET, discount=discount)
    same(found, gd.evaluate(data, TARGET, discount=discount))


@pytest.mark.parametrize("name", ["noisy", "episodes in no order", "interleaved episodes"])
def test_one_batch_is_enough(tmp_path, name):
    log = scanned(tmp_path, LOGS[name], batch_rows=10_000, cuts=(), group=10_000)
    same(gd.evaluate(log, TARGET, discount=0.9), gd.evaluate(LOGS[name], TARGET, discount=0.9))


@pytest.mark.parametrize("discount", [0.9, 1.0])
@pytest.mark.parametrize("name", LOGS)
def test_features_are_answered_as_in_memory(tmp_path, name, discount):
    data, policy, functions = LOGS[name], as_function(TARGET), features()
    found = gd.evaluate(scanned(tmp_path, data), policy, discount=discount, functions=functions)
    same(found, gd.evaluate(data, policy, discount=discount, functions=functions))


@pytest.mark.parametrize(
    "estimator", [gd.LSTDQ(0.9), gd.GenDICE(0.9), gd.DualDICE(0.9), gd.GradientDICE(0.9, ridge=0.1)], ids=str
)
def test_every_estimator_that_is_taken(tmp_path, estimator):
    same(gd.evaluate(scanned(tmp_path, NOISY), TARGET, estimator), gd.evaluate(NOISY, TARGET, estimator))


@settings(max_examples=10, deadline=None)
@given(
    cuts=st.lists(st.integers(1, len(NOISY) - 1), max_size=6),
    group=st.integers(20, 400),
    batch_rows=st.integers(5, 500),
    part_rows=st.integers(1, 300),
)
def test_no_border_matters(tmp_path_factory, cuts, group, batch_rows, part_rows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_module, "PART_ROWS", part_rows)
        folder = tmp_path_factory.mktemp("cut")
        log = gd.scan(written(folder, NOISY, cuts, group), batch_rows=batch_rows)
        same(gd.evaluate(log, TARGET, discount=0.9), ANSWER)


ANSWER = gd.evaluate(NOISY, TARGET, discount=0.9)


def test_the_size_of_the_table_is_found(tmp_path):
    policy = as_function(TARGET)
    same(gd.evaluate(scanned(tmp_path, TABLE), policy, discount=0.9), gd.evaluate(TABLE, policy, discount=0.9))


def test_a_large_table_is_solved_sparsely(tmp_path):
    rng = np.random.default_rng(3)
    states = rng.integers(0, 600, size=6000)
    data = gd.Transitions(
        states, rng.integers(0, 2, size=6000), rng.integers(0, 2, size=6000), rng.integers(0, 600, size=6000)
    )
    policy = gd.TabularPolicy(rng.dirichlet(np.ones(2), size=600))
    found = gd.evaluate(scanned(tmp_path, data, cuts=(1000, 3000), group=700), policy, discount=1.0)
    same(found, gd.evaluate(data, policy, discount=1.0))


def test_unlogged_steps_are_found(tmp_path):
    kept = ~((TABLE.states == 3) & (TABLE.actions == 1))
    data = gd.Transitions(
        *(array[kept] for array in (TABLE.states, TABLE.actions, TABLE.rewards, TABLE.next_states)),
        initial_states=TABLE.start_states,
    )
    found = gd.evaluate(scanned(tmp_path, data), TARGET, discount=0.9)
    assert found.diagnostics is not None and found.diagnostics.unlogged
    same(found, gd.evaluate(data, TARGET, discount=0.9))


def test_pairs_that_were_logged_once(tmp_path):
    rng = np.random.default_rng(5)
    states = np.append(rng.integers(0, 3, size=300), [3, 4, 5])
    following = np.append(rng.integers(0, 6, size=300), [0, 1, 2])
    actions = np.append(rng.integers(0, 2, size=300), [0, 1, 0])
    data = gd.Transitions(states, actions, rng.normal(size=303), following, initial_states=[0, 1, 2])
    same(gd.evaluate(scanned(tmp_path, data), TARGET, discount=0.9), gd.evaluate(data, TARGET, discount=0.9))


def test_vectors_and_random_features(tmp_path):
    rng = np.random.default_rng(1)
    states = rng.normal(size=(400, 2))
    data = gd.Transitions(
        states,
        rng.integers(0, 2, size=400),
        states[:, 0] + rng.normal(size=400),
        0.5 * states + rng.normal(size=(400, 2)),
        episodes=np.arange(400) // 8,
        initial_states=rng.normal(size=(50, 2)),
    )
    data.save(tmp_path / "log.parquet")
    policy = gd.DiscretePolicy(lambda states: np.tile([0.3, 0.7], (len(states), 1)), 2)
    functions = gd.RandomFourier(6, bandwidth=3.0)
    found = gd.evaluate(gd.scan(tmp_path / "log.parquet", batch_rows=90), policy, discount=0.9, functions=functions)
    expected = gd.evaluate(data, policy, discount=0.9, functions=functions)
    # These features are nearly collinear: the solve magnifies rounding.
    same(found, expected, rtol=1e-10)
    assert [move.where for move in found.movements] == [move.where for move in expected.movements]


def test_a_policy_that_is_sampled_draws_the_same_in_both_passes(tmp_path):
    rng = np.random.default_rng(2)
    states = rng.normal(size=(300, 1))
    data = gd.Transitions(states, rng.normal(size=(300, 1)), states[:, 0], 0.9 * states, initial_states=states[:9])
    data.save(tmp_path / "log.parquet")
    policy = gd.SamplingPolicy(lambda states, rng: states + rng.normal(size=states.shape))
    functions = gd.LinearFeatures(lambda states, actions: np.column_stack([states, actions]))
    log = gd.scan(tmp_path / "log.parquet", batch_rows=100)
    answers = [gd.evaluate(log, policy, discount=0.5, functions=functions, seed=seed) for seed in (0, 0, 1)]
    assert answers[0].interval == answers[1].interval
    assert answers[0].value != answers[2].value


def test_moments_are_those_in_memory(tmp_path):
    for functions, policy in ((features(), as_function(TARGET)), (gd.Tabular(6, 2), TARGET)):
        log = scanned(tmp_path / repr(functions)[:3], NOISY)
        found = gd.Moments.from_transitions(log, policy, functions)
        expected = gd.Moments.from_transitions(NOISY, policy, functions)
        for name in ("gram", "next_gram", "mean", "initial", "reward", "weight", "initial_weight", "absorbing_weight"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12, atol=1e-14)


def test_a_dataset_with_a_filter(tmp_path):
    """Rows that the filter leaves out are no part of the log: neither of its counts nor of its episodes."""
    folder = written(tmp_path / "log", NOISY, cuts=(100,), group=50)
    kept = with_fields(
        NOISY,
        **{
            name: getattr(NOISY, name)[known(NOISY.episodes) < 30]
            for name in ("states", "actions", "rewards", "next_states", "terminated", "episodes")
        },
    )
    log = gd.scan(ds.dataset(folder), filter=ds.field("episodes") < 30, batch_rows=40)
    assert len(log.parts) == 2
    same(gd.evaluate(log, TARGET, discount=0.9), gd.evaluate(kept, TARGET, discount=0.9))


def test_a_table_of_arrow_and_other_names():
    table = as_table(NOISY).rename_columns(["s" if name == "states" else name for name in as_table(NOISY).column_names])
    found = gd.evaluate(gd.scan(table, columns={"states": "s"}), TARGET, discount=0.9)
    same(found, ANSWER)


def test_names_of_episodes():
    table = as_table(NOISY)
    at = table.column_names.index("episodes")
    names = [[f"run {episode}" for episode in NOISY.episodes]]  # pyright: ignore[reportOptionalIterable]
    found = gd.evaluate(gd.scan(table.set_column(at, "episodes", names)), TARGET, discount=0.9)
    # Other names mean another order of the episodes, which only tests with random signs see.
    np.testing.assert_allclose(
        (found.value, *known(found.interval)), (ANSWER.value, *known(ANSWER.interval)), rtol=1e-12
    )


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"estimator": gd.WIS(0.9)}, "WIS"),
        ({"estimator": gd.DRL(0.9)}, "DRL"),
        ({"discount": 0.9, "solver": gd.PrimalDual(10, 0.1)}, "PrimalDual"),
        ({"discount": 0.9, "functions": gd.MLP()}, "Networks"),
        ({"discount": 0.9, "interval": gd.BootstrapInterval()}, "BootstrapInterval"),
    ],
)
def test_what_needs_the_log_in_memory_is_refused_by_name(tmp_path, arguments, named):
    with pytest.raises(gd.InputError, match=named):
        gd.evaluate(scanned(tmp_path, TABLE), TARGET, **arguments)


def test_what_does_not_take_a_scanned_log_says_so(tmp_path):
    log: Any = scanned(tmp_path, TABLE)
    for ask in (
        lambda: gd.Problem(log, TARGET),
        lambda: gd.posterior(log, TARGET, discount=0.9),
        lambda: gd.segments(log, TARGET, discount=0.9, by=[0], of="rows"),
        lambda: gd.return_distribution(log, TARGET, 0.9),
    ):
        with pytest.raises(gd.InputError, match="log.sample"):
            ask()


def test_what_has_one_row_per_transition_is_not_kept(tmp_path):
    found = gd.evaluate(scanned(tmp_path, NOISY), TARGET, discount=0.9)
    assert found.ratio is None and found.influence is None and found.footprint is None and found.unit_shares == []
    with pytest.raises(gd.InputError, match="same log"):
        _ = ANSWER - found
    with pytest.raises(gd.InputError, match="rank"):
        _ = found - gd.evaluate(scanned(tmp_path, NOISY), TARGET, discount=0.9)
    found.report(tmp_path / "report.html")


def test_the_interval_is_made_of_the_same_room(tmp_path):
    kept = ~((TABLE.states == 3) & (TABLE.actions == 1))
    parts = (array[kept] for array in (TABLE.states, TABLE.actions, TABLE.rewards, TABLE.next_states))
    data = gd.Transitions(*parts, initial_states=[2, 2, 2])
    found, expected = (
        known(gd.evaluate(log, TARGET, discount=0.9).sources).room.causes(0.95)
        for log in (scanned(tmp_path, data), data)
    )
    assert {"steps that were never logged", "starts that were never seen"} <= found.keys() == expected.keys()
    np.testing.assert_allclose(list(found.values()), list(expected.values()), rtol=1e-9)


def test_actions_in_another_order_than_the_policys(tmp_path):
    with_fields(NOISY, action_names=("stay", "go")).save(tmp_path / "log.parquet")
    log = gd.scan(tmp_path / "log.parquet")
    probabilities = as_function(TARGET).function
    same(gd.evaluate(log, gd.DiscretePolicy(probabilities, 2, action_names=("stay", "go")), discount=0.9), ANSWER)
    with pytest.raises(gd.InputError, match="load the log"):
        gd.evaluate(log, gd.DiscretePolicy(probabilities, 2, action_names=("go", "stay")), discount=0.9)


def test_a_stretch_without_rows_that_count(tmp_path):
    weights = np.ones(len(NOISY))
    weights[50:150] = 0.0
    data = with_fields(NOISY, weights=weights)
    same(gd.evaluate(scanned(tmp_path, data), TARGET, discount=0.9), gd.evaluate(data, TARGET, discount=0.9))
    nothing = as_table(data).set_column(as_table(data).column_names.index("weights"), "weights", [0.0 * weights])
    with pytest.raises(gd.InputError, match="weights are all zero"):
        gd.evaluate(gd.scan(nothing), TARGET, discount=0.9)


def test_without_starts_as_in_memory(tmp_path):
    data = with_fields(TABLE, episodes=None)
    for log in (data, scanned(tmp_path, data)):
        with pytest.raises(gd.InputError, match="initial_states"):
            gd.evaluate(log, TARGET, discount=0.9)
