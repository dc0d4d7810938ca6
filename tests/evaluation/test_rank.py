"""Several policies on one log: the same answers as one by one, and what is said about all at once."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.evaluation.ranking import COLUMNS
from problems import known, linear_system, random_problem

SHARES = (0.1, 0.3, 0.5, 0.8)


def policy(share: float) -> gd.TabularPolicy:
    return gd.TabularPolicy(np.tile([share, 1 - share], (5, 1)))


def rollout(seed: int = 0, episodes: int = 80):
    mdp, _, _ = random_problem(3)
    behavior = np.full((5, 2), 0.5)
    return mdp, mdp.rollout(behavior, episodes, 25, np.random.default_rng(seed))


@pytest.fixture(scope="module")
def data():
    return rollout()[1]


@pytest.fixture(scope="module")
def ranking(data):
    return gd.rank(data, {f"p{share}": policy(share) for share in SHARES}, 0.9)


def test_the_table_has_its_columns_best_first(ranking):
    table = ranking.table
    assert tuple(table.columns) == COLUMNS
    assert list(table["policy"]) == list(ranking.names) and table["value"].is_monotonic_decreasing
    assert table["probability_best"].sum() == pytest.approx(1)
    assert table["in_best_set"].iloc[0] and tuple(table["policy"][table["in_best_set"]]) == ranking.best_set
    assert set(ranking.estimates) == {f"p{share}" for share in SHARES}
    assert "may be the best" in str(ranking) and all(name in str(ranking) for name in ranking.names)


def test_it_is_evaluate_for_each(data, ranking):
    for share in SHARES:
        alone, found = gd.evaluate(data, policy(share), discount=0.9), ranking.estimates[f"p{share}"]
        assert (found.value, found.interval, found.verdict) == (alone.value, alone.interval, alone.verdict)
        assert [check.value for check in found.checks] == [check.value for check in alone.checks]
        difference, improvement = ranking.differences[f"p{share}"], known(alone.improvement)
        assert (difference.value, difference.interval) == (improvement.value, improvement.interval)


def test_one_policy_is_evaluate_to_the_digit(data):
    found = gd.rank(data, {"only": policy(0.3)}, 0.9)
    alone = gd.evaluate(data, policy(0.3), discount=0.9)
    (row,) = found.table.to_dict("records")
    assert (row["value"], row["low"], row["high"]) == (alone.value, *known(alone.interval))
    improvement = known(alone.improvement)
    assert (row["difference_low"], row["difference_high"]) == improvement.interval
    assert (row["simultaneous_low"], row["simultaneous_high"]) == improvement.interval
    assert row["probability_best"] == 1 and row["in_best_set"]


def test_simultaneous_intervals_contain_the_single_ones(ranking):
    table = ranking.table
    assert (table["simultaneous_low"] <= table["difference_low"]).all()
    assert (table["simultaneous_high"] >= table["difference_high"]).all()
    width = (table["simultaneous_high"] - table["simultaneous_low"]) / (
        table["difference_high"] - table["difference_low"]
    )
    # Wider than one, and narrower than Bonferroni's for four (1.27).
    assert (width > 1.02).all() and (width < 1.27).all()


def test_a_named_baseline_differs_from_itself_by_nothing(data):
    policies = {f"p{share}": policy(share) for share in SHARES}
    table = gd.rank(data, policies, 0.9, baseline="p0.3").table.set_index("policy")
    columns = ["difference", "difference_low", "difference_high", "simultaneous_low", "simultaneous_high"]
    assert (table.loc["p0.3", columns] == 0).all()
    found = gd.evaluate(data, policies["p0.8"], discount=0.9) - gd.evaluate(data, policies["p0.3"], discount=0.9)
    assert tuple(table.loc["p0.8", columns[:3]]) == (found.value, *found.interval)


def test_names_and_their_order_change_nothing(data, ranking):
    other = gd.rank(data, {f"q{9 - number}": policy(share) for number, share in enumerate(SHARES[::-1])}, 0.9)
    numbers = [name for name in COLUMNS if name not in ("policy", "verdict")]
    assert ranking.table[numbers].equals(other.table[numbers])


def test_equal_policies_share_the_probability_and_the_set(data):
    found = gd.rank(data, {"a": policy(0.1), "b": policy(0.1), "c": policy(0.8)}, 0.9)
    assert found.probability_best["a"] == found.probability_best["b"]
    assert ("a" in found.best_set) == ("b" in found.best_set)


def test_the_best_of_policies_that_are_far_apart_is_known():
    """One policy earns 1 where the other earns 0, in a log of noise around these."""
    rng = np.random.default_rng(0)
    actions = rng.integers(0, 2, 2000)
    rewards = actions + 0.5 * rng.normal(size=2000)
    data = gd.Transitions(np.zeros(2000, int), actions, rewards, np.zeros(2000, int), initial_states=[0] * 40)
    found = gd.rank(data, {"bad": gd.TabularPolicy([[1, 0]]), "good": gd.TabularPolicy([[0, 1]])}, 0.5)
    assert found.best_set == ("good",) and found.probability_best["good"] == 1
    assert found.differences["good"].decision == "better" and found.differences["bad"].decision == "worse"


def test_several_discounts_give_a_ranking_each(data):
    policies = {f"p{share}": policy(share) for share in SHARES[:2]}
    found = gd.rank(data, policies, [0.5, 0.9])
    assert list(found) == [0.5, 0.9] and len(found) == 2
    assert found[0.9].table.equals(gd.rank(data, policies, 0.9).table)
    table = found.table
    assert tuple(table.columns) == ("discount", *COLUMNS) and list(table["discount"]) == [0.5, 0.5, 0.9, 0.9]
    assert "discount 0.5" in str(found) and len(found.to_dict()["rankings"]) == 2


def test_to_dict_is_plain(ranking):
    plain = ranking.to_dict()
    assert plain["baseline"] == "behavior" and plain["best_set"] == list(ranking.best_set)
    assert [row["policy"] for row in plain["policies"]] == list(ranking.names)
    assert '"probability_best"' in ranking.to_json()


def test_what_cannot_be_ranked_is_refused(data):
    one = {"one": policy(0.3)}
    for policies, text in (
        ({}, "empty"),
        ([policy(0.3)], "dict"),
        ({"one": np.full((5, 2), 0.5)}, "Policy 'one': policy must be"),
        ({1: policy(0.3)}, "names"),
        ({"behavior": policy(0.3)}, "may be called 'behavior'"),
    ):
        with pytest.raises(gd.InputError, match=text):
            gd.rank(data, policies, 0.9)  # pyright: ignore[reportArgumentType, reportCallIssue]
    with pytest.raises(gd.InputError, match="baseline must be one of 'behavior', 'one'"):
        gd.rank(data, one, 0.9, baseline="two")
    with pytest.raises(gd.InputError, match="discount"):
        gd.rank(data, one, [])
    with pytest.raises(gd.InputError, match="twice"):
        gd.rank(data, one, [0.9, 0.9])
    with pytest.raises(gd.InputError, match="Policy 'wide': "):
        gd.rank(data, {**one, "wide": gd.TabularPolicy(np.full((2, 2), 0.5))}, 0.9)


def test_a_behaviour_that_is_not_known_is_no_baseline():
    data = gd.Transitions([0, 1, 0, 1], [0, 1, 1, 0], [0.0, 1.0, 0.5, 1.0], [1, 0, 1, 0])
    with pytest.raises(gd.InputError, match="initial"):
        gd.rank(data, {"a": gd.TabularPolicy(np.full((2, 2), 0.5))}, 0.9)


def test_a_hundred_policies(data):
    rng = np.random.default_rng(1)
    policies = {str(k): gd.TabularPolicy(rng.dirichlet([1, 1], size=5)) for k in range(100)}
    table = gd.rank(data, policies, 0.9).table
    assert len(table) == 100 and sum(table["probability_best"]) == pytest.approx(1)
    assert 1 <= sum(table["in_best_set"]) < 100


def test_policies_share_what_the_log_decides(monkeypatch):
    """Features at the logged pairs and tests of the log are computed once; each policy is asked as by `evaluate`."""
    from gradientdice.functions.kernel import FittedKernel
    from gradientdice.statistics import log_tests

    log, own = linear_system(0)
    seen, checked = [], []
    at = FittedKernel.at
    monkeypatch.setattr(FittedKernel, "at", lambda self, *pair: (seen.append(len(pair[0])), at(self, *pair))[1])
    shifted = getattr(log_tests, "shifted_checks")  # noqa: B009
    monkeypatch.setattr(log_tests, "shifted_checks", lambda data: (checked.append(1), shifted(data))[1])
    gd.evaluate(log, own, discount=0.9, effort="quick")
    alone = len(seen)
    seen.clear()
    checked.clear()
    gd.rank(log, {"a": own, "b": own, "c": own}, 0.9, effort="quick", baseline="a")
    # Each design looks at its first row once more, for its width.
    assert sum(count > 1 for count in seen) <= alone and checked == [1]


def test_searched_features_give_the_answers_of_evaluate():
    log, own = linear_system(0)
    alone = gd.evaluate(log, own, discount=0.9, effort="quick")
    assert isinstance(own, (gd.SamplingPolicy, gd.DiscretePolicy))
    found = gd.rank(log, {"a": own, "b": own}, 0.9, effort="quick", baseline="a").estimates
    for estimate in found.values():
        assert estimate.value == pytest.approx(alone.value, rel=1e-9)
        assert known(estimate.interval) == pytest.approx(known(alone.interval), rel=1e-9)
    assert (found["a"] - found["b"]).interval == (0, 0)


def drawn_policies(rng: np.random.Generator) -> dict[str, gd.TabularPolicy]:
    """Six policies that are much alike, so that it is not clear which is the best."""
    shares = np.clip(0.5 + 0.15 * rng.normal(size=(6, 5)), 0.05, 0.95)
    return {str(number): gd.TabularPolicy(np.column_stack([own, 1 - own])) for number, own in enumerate(shares)}


@pytest.mark.slow
def test_what_is_said_about_all_policies_at_once_holds():
    """Of 200 logs, simultaneous intervals and best sets hold in 93% at least, and probabilities are what they say."""
    mdp, _ = rollout()
    behavior, held, contained, probability, won = np.full((5, 2), 0.5), 0, 0, [], []
    baseline = mdp.value(behavior, 0.9)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        policies = drawn_policies(rng)
        values = {name: mdp.value(own.probabilities, 0.9) for name, own in policies.items()}
        best = max(values, key=lambda name: values[name])
        found = gd.rank(mdp.rollout(behavior, 20, 25, rng), policies, 0.9)
        held += all(low <= values[name] - baseline <= high for name, (low, high) in found.simultaneous.items())
        contained += best in found.best_set
        probability += [found.probability_best[name] for name in policies]
        won += [name == best for name in policies]
    assert 186 <= held <= 199 and 186 <= contained
    # Where it is not clear which is the best, a policy is it as often as its probabilities say.
    said, is_best = np.array(probability), np.array(won)
    unclear = (said > 0.1) & (said < 0.9)
    assert unclear.sum() > 40
    assert is_best[unclear].mean() == pytest.approx(said[unclear].mean(), abs=0.15)


def test_pairing_shortens_the_intervals_of_policies_that_are_alike():
    mdp, _ = rollout()
    shorter = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        policies = drawn_policies(rng)
        data = mdp.rollout(np.full((5, 2), 0.5), 20, 25, rng)
        one, other = (gd.evaluate(data, policies[name], discount=0.9) for name in ("0", "1"))
        apart = np.hypot(known(one.sampling_error), known(other.sampling_error))
        shorter.append((one - other).sampling_error / apart)
    assert np.median(shorter) < 0.8
