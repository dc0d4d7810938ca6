"""`rank`, `select`, `compare`, differences and several discounts of scanned logs: the answers of a log in memory."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.log.scanning.passes import Run
from gradientdice.problem.scan.moments import BatchFeatures
from problems import known
from scans import ACTIONS, STATES, as_function, features, same, small_table, with_fields, written

NOISY, TARGET = small_table(noise=1.0, episodes=60)
TABLE, _ = small_table(episodes=60)
RNG = np.random.default_rng(4)
POLICIES = {
    "target": TARGET,
    "other": gd.TabularPolicy(RNG.dirichlet(np.ones(ACTIONS), size=STATES)),
    "near": gd.TabularPolicy(0.9 * TARGET.probabilities + 0.05),
}
FUNCTIONS = {name: as_function(policy) for name, policy in POLICIES.items()}
LOGS = {
    "episodes": TABLE,
    "noisy": NOISY,
    "weights": with_fields(NOISY, weights=RNG.random(len(NOISY))),
    "independent rows": with_fields(TABLE, episodes=None, initial_states=TABLE.start_states),
    "noisy independent rows": with_fields(NOISY, episodes=None, initial_states=NOISY.start_states),
    "episodes in no order": with_fields(NOISY, episodes=RNG.permutation(60)[NOISY.episodes]),
}


# The others go the same ways in other combinations.
QUICK = ("noisy", "independent rows")
AT = (("noisy", 1.0), ("independent rows", 0.5))
EVERY = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in LOGS]


def scanned(folder, data, **options):
    return gd.scan(written(folder / "log", data, (100, 201), 50), batch_rows=37, **options)


def same_rankings(found: gd.Ranking, expected: gd.Ranking) -> None:
    assert found.names == expected.names and found.best_set == expected.best_set
    np.testing.assert_allclose(found.side.sources.value, expected.side.sources.value, rtol=1e-12)
    one, other = found.table.set_index("policy"), expected.table.set_index("policy")
    for column in one.columns:
        if one[column].dtype.kind == "f":
            np.testing.assert_allclose(one[column], other[column], rtol=0, atol=1e-11, err_msg=column)
        else:
            assert one[column].tolist() == other[column].tolist(), column


@pytest.mark.parametrize(
    ("name", "discount"),
    [
        pytest.param(name, discount, marks=() if (name, discount) in AT else pytest.mark.slow)
        for name in LOGS
        for discount in (0.5, 1.0)
    ],
)
def test_tables_are_ranked_as_in_memory(tmp_path, name, discount):
    """Below discount 1, and with episodes that are cut at 1, the behaviour's value is the counted process's."""
    found = gd.rank(scanned(tmp_path, LOGS[name]), POLICIES, discount)
    same_rankings(found, gd.rank(LOGS[name], POLICIES, discount))


@pytest.mark.parametrize("name", ["noisy", pytest.param("noisy independent rows", marks=pytest.mark.slow)])
def test_features_are_ranked_as_in_memory(tmp_path, name):
    found = gd.rank(scanned(tmp_path, LOGS[name]), FUNCTIONS, 0.9, baseline="other", functions=features())
    same_rankings(found, gd.rank(LOGS[name], FUNCTIONS, 0.9, baseline="other", functions=features()))


def test_two_passes_serve_all_policies(tmp_path, monkeypatch):
    log, read = scanned(tmp_path, NOISY), []
    batches = type(log).batches

    def counted(*arguments, **options):
        for batch in batches(*arguments, **options):
            read.append(len(batch.data))
            yield batch

    monkeypatch.setattr(type(log), "batches", counted)
    gd.rank(log, FUNCTIONS, [0.5, 0.9], functions=features())
    # One for the sample, one for the moments, one for the scores.
    assert sum(read) == 3 * len(NOISY)


def test_the_features_of_a_policy_are_made_once_for_all_discounts(tmp_path, monkeypatch):
    log, made = scanned(tmp_path, NOISY), []
    for name in ("chunks", "written"):
        given = getattr(BatchFeatures, name)
        monkeypatch.setattr(
            BatchFeatures, name, lambda own, data, *more, g=given: made.append(len(data)) or g(own, data, *more)
        )
    gd.evaluate(log, FUNCTIONS["target"], discount=0.9, functions=features())
    once = sum(made)
    gd.evaluate(log, FUNCTIONS["target"], discount=[0.5, 0.9, 0.95], functions=features())
    # The sample's tests look at it for each discount; passes over the log do not.
    assert sum(made) - 2 * once <= 2 * 2 * len(log.sample)


def test_pairs_that_were_logged_once_have_the_same_sign_for_all_policies(tmp_path):
    rng = np.random.default_rng(5)
    states, actions = (
        np.append(rng.integers(0, 3, size=300), [3, 4, 5]),
        np.append(rng.integers(0, 2, size=300), [0, 1, 0]),
    )
    following = np.append(rng.integers(0, 6, size=300), [0, 1, 2])
    data = gd.Transitions(states, actions, rng.normal(size=303), following, initial_states=[0, 1, 2])
    found, expected = (gd.rank(log, POLICIES, 0.9, baseline="other") for log in (scanned(tmp_path, data), data))
    same_rankings(found, expected)


def test_a_selection(tmp_path):
    found, expected = (gd.select(log, POLICIES, 0.5) for log in (scanned(tmp_path, NOISY), NOISY))
    assert (found.choice, found.better, found.reason) == (expected.choice, expected.better, expected.reason)


@pytest.mark.parametrize("given", [{}, {"functions": features()}], ids=["table", "features"])
def test_several_discounts_have_the_band_of_a_log_in_memory(tmp_path, given):
    policy = FUNCTIONS["target"] if given else TARGET
    found, expected = (
        gd.evaluate(log, policy, discount=[0.5, 0.8, 1.0], **given) for log in (scanned(tmp_path, NOISY), NOISY)
    )
    for one, other in zip(found, expected, strict=True):
        same(one, other)
    np.testing.assert_allclose(known(found.band), known(expected.band), atol=1e-11)


@pytest.mark.parametrize("name", EVERY)
def test_the_improvement_is_that_of_a_log_in_memory(tmp_path, name):
    found, expected = (
        known(gd.evaluate(log, TARGET, discount=0.5).improvement) for log in (scanned(tmp_path, LOGS[name]), LOGS[name])
    )
    np.testing.assert_allclose((found.value, *found.interval), (expected.value, *expected.interval), atol=1e-11)


def test_what_time_limits_cut_off_is_allowed_for(tmp_path):
    """At discount 0.95 a third of the behaviour's steps is beyond the limits: its value may be off by what is unseen."""
    found = known(gd.evaluate(scanned(tmp_path, NOISY), TARGET, discount=0.95).improvement)
    assert found.sources.room.causes(0.95)["misfit of the functions"] > 0
    expected = known(gd.evaluate(NOISY, TARGET, discount=0.95).improvement)
    assert abs(found.value - expected.value) < 2 * found.standard_error


def test_estimates_of_one_ranking_are_subtracted(tmp_path):
    found = gd.rank(scanned(tmp_path, NOISY), POLICIES, 0.9, baseline="other").estimates
    expected = gd.rank(NOISY, POLICIES, 0.9, baseline="other").estimates
    one, other = found["target"] - found["near"], expected["target"] - expected["near"]
    np.testing.assert_allclose((one.value, *one.interval), (other.value, *other.interval), atol=1e-12)


def test_a_comparison_has_the_values_of_all_rows(tmp_path):
    estimators = [gd.GradientDICE(0.9), gd.GenDICE(0.9), gd.LSTDQ(0.9), gd.WIS(0.9), gd.DualDICE(0.5)]
    found = gd.compare(scanned(tmp_path, NOISY), TARGET, estimators).set_index("estimator")
    expected = gd.compare(NOISY, TARGET, estimators).set_index("estimator")
    for estimator in estimators[:3]:
        for column in ("value", "low", "high", "bellman_loss"):
            np.testing.assert_allclose(found[column][repr(estimator)], expected[column][repr(estimator)], rtol=1e-11)
    notes = found["note"].to_dict()
    assert "memory" in notes[repr(estimators[3])] and "discount" in notes[repr(estimators[4])]
    assert list(found["choice"]).count("use this") == 1


def test_estimators_without_a_closed_form_are_known_before_any_pass(tmp_path, monkeypatch):
    asked, sums = [], Run.sums
    monkeypatch.setattr(Run, "sums", lambda run, log, work: asked.append(work.name) or sums(run, log, work))
    estimators = [gd.GradientDICE(0.9), gd.GenDICE(0.9)]
    table = gd.compare(scanned(tmp_path, NOISY), FUNCTIONS["target"], estimators, functions=features())
    assert asked == ["moments", "scores"]
    assert table["note"].str.contains("no closed form").sum() == 1


def test_refusals_name_the_policy(tmp_path):
    wrong = gd.TabularPolicy(np.full((STATES, 3), 1 / 3))
    with pytest.raises(gd.InputError, match="Policy 'wide'"):
        gd.rank(scanned(tmp_path, NOISY), {"target": TARGET, "wide": wrong}, 0.9)
    with pytest.raises(gd.InputError, match="baseline"):
        independent = LOGS["noisy independent rows"]
        gd.rank(scanned(tmp_path / "rows", independent), FUNCTIONS, 0.9, functions=features())


def test_an_interrupted_ranking_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("gradientdice.log.scanning.opening.PART_ROWS", 1)
    log = gd.scan(written(tmp_path / "log", NOISY, (100, 201), 500), batch_rows=37)
    two = {name: POLICIES[name] for name in ("target", "near")}
    expected = gd.rank(log, two, [0.5, 0.9])
    for _ in range(2):
        found = gd.rank(log, two, [0.5, 0.9], checkpoint=tmp_path / "passes")
        for discount, ranking in expected.items():
            assert ranking.table.equals(found[discount].table)
    with pytest.raises(gd.InputError, match="checkpoint"):
        gd.rank(NOISY, two, 0.9, checkpoint=tmp_path / "passes")
