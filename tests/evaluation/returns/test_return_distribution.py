"""`return_distribution` against all returns of a small MDP, enumerated with their probabilities."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.estimators.returns.points import StepFunction, representative
from problems import known, ladder, loop, single, take


def enumerated(mdp, policy, discount, horizon=None, terminal=None):
    """All returns with their probabilities, by following every path; equal returns are put together."""
    paths = {(state, 0.0): chance for state, chance in enumerate(mdp.initial) if chance > 0}
    done: dict[float, float] = {}
    step = 0
    while paths and (horizon is None or step < horizon):
        following: dict[tuple[int, float], float] = {}
        for (state, total), chance in paths.items():
            for action, taken in enumerate(policy[state]):
                earned = round(total + discount**step * mdp.reward[state, action], 10)
                for then, moved in enumerate(mdp.transition[state, action]):
                    mass = chance * taken * moved
                    if mass == 0:
                        continue
                    if terminal is not None and then >= terminal:
                        done[earned] = done.get(earned, 0.0) + mass
                    else:
                        following[then, earned] = following.get((then, earned), 0.0) + mass
        paths, step = following, step + 1
    for (_, total), chance in paths.items():
        done[total] = done.get(total, 0.0) + chance
    returns = np.array(sorted(done))
    return StepFunction(returns, np.cumsum([done[value] for value in returns]))


def ladders(seed=0, episodes=2000):
    mdp, target, behavior, (end,) = ladder(seed)
    data = mdp.rollout(behavior, episodes, 10, np.random.default_rng(seed), terminal=end)
    return mdp, target, data, end


def largest_distance(found, exact):
    """Between two distribution functions, a little after each jump of either."""
    points = np.concatenate([found.function.points, exact.points]) + 1e-7
    at = np.concatenate([[0.0], exact.cdf])[np.searchsorted(exact.points, points, side="right")]
    return np.abs(found.cdf(points) - at).max()


@pytest.mark.parametrize("discount", [0.0, 0.9, 1.0])
@pytest.mark.parametrize("method", ["weighted", "doubly robust"])
def test_episodes_give_the_enumerated_distribution(method, discount):
    mdp, target, data, end = ladders(episodes=6000)
    exact = enumerated(mdp, target, discount, terminal=end)
    # So many intervals of 95% would not all hold the truth.
    found = gd.return_distribution(data, gd.TabularPolicy(target), discount, method=method, confidence=0.999)
    assert found.source == "episodes" and (found.method.startswith("doubly")) == (method == "doubly robust")
    assert largest_distance(found, exact) < min(0.03, known(found.band).half_width)
    scale = exact.variance**0.5
    assert found.mean == pytest.approx(exact.mean, abs=0.03 * scale)
    assert found.variance == pytest.approx(exact.variance, rel=0.08)
    assert found.cvar(0.1) == pytest.approx(exact.cvar(0.1), abs=0.1 * scale)
    for what, truth in [("mean", exact.mean), ("variance", exact.variance)]:
        low, high = known(found.interval(what))
        assert low < truth < high
    low, high = known(found.interval("cvar", 0.25))
    assert low < exact.cvar(0.25) < high


def test_below_discount_1_the_mean_is_the_value_of_the_mdp():
    mdp, target, data, _ = ladders(episodes=4000)
    found = gd.return_distribution(data, gd.TabularPolicy(target), 0.9)
    low, high = known(found.interval("mean"))
    assert low < mdp.value(target, 0.9) / 0.1 < high


def test_the_weighted_mean_is_that_of_wis():
    mdp, target, data, _ = ladders(episodes=300)
    found = gd.return_distribution(data, gd.TabularPolicy(target), 0.9, method="weighted")
    assert found.mean == pytest.approx(known(gd.evaluate(data, gd.TabularPolicy(target), gd.WIS(0.9)).total))


def test_a_good_model_takes_most_of_the_weights_noise():
    """Behaviour and target differ much; the standard deviation of F at the median over 40 logs."""
    mdp, _, _, (end,) = ladder(0)
    behavior, target = np.tile([0.8, 0.2], (4, 1)), np.tile([0.2, 0.8], (4, 1))
    middle = enumerated(mdp, target, 1.0, terminal=end).quantile(0.5) + 1e-7
    found = {"weighted": [], "doubly robust": []}
    for seed in range(40):
        data = mdp.rollout(behavior, 300, 10, np.random.default_rng(seed), terminal=end)
        for method, values in found.items():
            own = gd.return_distribution(data, gd.TabularPolicy(target), 1.0, method=method, seed=seed)
            values.append(own.cdf(middle))
    assert np.std(found["doubly robust"]) < 0.8 * np.std(found["weighted"])


def test_the_target_that_logged_the_data_has_the_plain_distribution():
    mdp, target, _, end = ladders()
    data = mdp.rollout(target, 500, 10, np.random.default_rng(1), terminal=end)
    found = gd.return_distribution(data, gd.TabularPolicy(target), 1.0, method="weighted")
    totals = np.bincount(known(data.episodes), data.rewards)
    assert found.effective_episodes == pytest.approx(500)
    assert found.mean == pytest.approx(totals.mean()) and found.variance == pytest.approx(totals.var())
    for x in (-1.0, 0.0, 1.0):
        assert found.cdf(x) == pytest.approx((totals <= x).mean())
    assert found.quantile(0.3) == pytest.approx(np.quantile(totals, 0.3, method="inverted_cdf"))
    assert found.cvar(0.2) == pytest.approx(np.sort(totals)[:100].mean())


def test_a_horizon_makes_cut_episodes_whole():
    mdp, target, behavior, _ = loop(2)
    data = mdp.rollout(behavior, 5000, 3, np.random.default_rng(0))
    exact = enumerated(mdp, target, 1.0, horizon=3)
    found = gd.return_distribution(data, gd.TabularPolicy(target), 1.0, horizon=3)
    assert largest_distance(found, exact) < known(found.band).half_width < 0.08
    # What comes later plays no part.
    longer = mdp.rollout(behavior, 5000, 6, np.random.default_rng(1))
    again = gd.return_distribution(longer, gd.TabularPolicy(target), 1.0, horizon=3)
    assert largest_distance(again, exact) < known(again.band).half_width


def test_what_a_time_limit_cut_off_is_in_the_band():
    mdp, target, behavior, _ = single()
    data = mdp.rollout(behavior, 2000, 4, np.random.default_rng(0))
    exact = enumerated(mdp, target, 0.6, horizon=14)
    found = gd.return_distribution(data, gd.TabularPolicy(target), 0.6, method="weighted")
    band = known(found.band)
    at = exact.cdf[np.clip(np.searchsorted(exact.points, band.points + 1e-9) - 1, 0, None)]
    assert (band.low <= at + 1e-3).all() and (at <= band.high + 1e-3).all()
    assert (band.high - band.low).max() > 2.5 * band.half_width
    low, high = known(found.interval("mean"))
    assert low < exact.mean < high and "cut by a time limit" in str(found)


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_without_probabilities_a_table_is_simulated_and_marked(discount):
    mdp, target, data, end = ladders(episodes=6000)
    exact = enumerated(mdp, target, discount, terminal=end)
    found = gd.return_distribution(replace(data, behavior_log_probs=None), gd.TabularPolicy(target), discount)
    assert found.source == "model" and found.band is None and found.interval("mean") is None
    assert largest_distance(found, exact) < 0.03
    assert "FROM A MODEL" in str(found) and found.table["low"].isna().to_numpy().all()
    cloned = gd.return_distribution(
        replace(data, behavior_log_probs=None), gd.TabularPolicy(target), discount, behavior=gd.BehaviorCloning()
    )
    assert cloned.source == "episodes" and largest_distance(cloned, exact) < 0.03


@pytest.mark.slow
def test_continuous_states_are_simulated_in_a_learned_model():
    """s' = s/2 + a noise-free push; three steps from N(0, 1): the return is linear in the start."""
    rng = np.random.default_rng(0)
    states = rng.normal(size=(2000, 1))
    actions = rng.integers(0, 2, 2000)
    data = gd.Transitions(
        states, actions, states[:, 0], 0.5 * states + actions[:, None], initial_states=rng.normal(size=(500, 1))
    )
    push = gd.DiscretePolicy(lambda at: np.tile([0.0, 1.0], (len(at), 1)), 2)
    found = gd.return_distribution(data, push, 1.0, horizon=3, effort="quick")
    # s + (s/2 + 1) + (s/4 + 3/2)
    assert found.source == "model" and "learned dynamics" in found.method
    assert found.mean == pytest.approx(2.5, abs=0.3)
    assert found.variance**0.5 == pytest.approx(1.75, rel=0.15)


def test_many_different_returns_are_gathered_without_changing_the_mean():
    rng = np.random.default_rng(0)
    returns, weights = rng.normal(size=5000), rng.random(5000)
    points = representative(returns, weights)
    assert 400 < len(points) <= 512 and (np.diff(points) > 0).all()
    tied = representative(np.repeat([1.0, 2.0, 3.0], 1000) + 1e-15, np.ones(3000))
    np.testing.assert_allclose(tied, [1, 2, 3])


def test_refusals():
    mdp, target, data, _ = ladders(episodes=50)
    policy = gd.TabularPolicy(target)
    cut, same, behavior, _ = loop(2)
    limited = cut.rollout(behavior, 20, 4, np.random.default_rng(0))
    with pytest.raises(gd.InputError, match="average reward has no return distribution"):
        gd.return_distribution(limited, gd.TabularPolicy(same), 1.0)
    with pytest.raises(gd.InputError, match="average reward has no return distribution"):
        gd.return_distribution(replace(limited, behavior_log_probs=None), gd.TabularPolicy(same), 1.0)
    for source, method in (("episodes", None), (None, "weighted")):
        with pytest.raises(gd.InputError, match="the first after 4 steps"):
            gd.return_distribution(limited, gd.TabularPolicy(same), 1.0, horizon=9, source=source, method=method)
    with pytest.raises(gd.InputError, match="needs whole trajectories"):
        gd.return_distribution(replace(data, episodes=None, initial_states=[0]), policy, 0.9, source="episodes")
    with pytest.raises(gd.InputError, match="needs the probability with which each logged action"):
        gd.return_distribution(replace(data, behavior_log_probs=None), policy, 0.9, source="episodes")
    with pytest.raises(gd.InputError, match="The doubly robust distribution is for tables"):
        gd.return_distribution(data, policy, 0.9, method="doubly robust", horizon=2)
    with pytest.raises(gd.InputError, match="method= is for weighted episodes"):
        gd.return_distribution(data, policy, 0.9, method="weighted", source="model")
    with pytest.raises(gd.InputError, match='source must be "episodes" or "model"'):
        gd.return_distribution(data, policy, 0.9, source="rollouts")
    with pytest.raises(gd.InputError, match="needs initial states"):
        lone = take(data, np.arange(len(data)), episodes=None, behavior_log_probs=None)
        gd.return_distribution(lone, policy, 0.9)
    found = gd.return_distribution(data, policy, 0.9)
    for wrong in (0.0, 1.5):
        with pytest.raises(gd.InputError, match="p must lie in"):
            found.quantile(wrong)
    with pytest.raises(gd.InputError, match="needs p"):
        found.interval("cvar")
    with pytest.raises(gd.InputError, match="what must be"):
        found.interval("median")


def test_figure_and_table():
    _, target, data, _ = ladders(episodes=50)
    found = gd.return_distribution(data, gd.TabularPolicy(target), 1.0)
    assert len(found.plot().axes) == 1
    assert found.table.columns.tolist() == ["quantity", "value", "low", "high"]
    assert (found.table["low"].to_numpy() <= found.table["value"].to_numpy() + 1e-9).all()
    assert "band" in str(found) and "effective" in str(found)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["weighted", "doubly robust"])
def test_the_band_holds_the_whole_function_as_often_as_it_says(method):
    """400 logs of 200 episodes; the band is for a discrete distribution, so that it may hold it more often."""
    mdp, target, behavior, (end,) = ladder(0)
    exact = enumerated(mdp, target, 0.9, terminal=end)
    hits = means = 0
    for seed in range(400):
        data = mdp.rollout(behavior, 200, 10, np.random.default_rng(seed), terminal=end)
        found = gd.return_distribution(data, gd.TabularPolicy(target), 0.9, method=method, seed=seed)
        hits += largest_distance(found, exact) <= known(found.band).half_width
        low, high = known(found.interval("mean"))
        means += low < exact.mean < high
    print(method, hits / 400, means / 400)
    assert 0.92 <= hits / 400 <= 0.985
    assert 0.92 <= means / 400 <= 0.98
