"""DR, WDR and MAGIC: exact expectations by enumeration, the recursion as loops, coverage where episodes end and are cut."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

import gradientdice as gd
from gradientdice.inference.folds import Folds
from gradientdice.inference.intervals import NormalInterval, independent_shares, standard_error
from gradientdice.related.behavior import Episodes, importance_ratios
from gradientdice.related.cross_fitted_q import CrossFittedQ
from gradientdice.related.magic import simplex_minimum
from gradientdice.related.step_weights import StepWeights
from reference.trajectories import doubly_robust, every_trajectory, finite_value, fold_q, j_step_returns
from related.problems import ladder, leak, loop, rolled, single, take

THREE = [gd.DR, gd.WDR, gd.MAGIC]
TWO = [gd.DR, gd.WDR]
PROBLEMS = [loop, ladder, leak, single]


def answer(estimator, data, target, functions=None, seed=0):
    return estimator.answer(data, gd.TabularPolicy(target), functions or gd.Tabular(*target.shape), seed)


@pytest.mark.parametrize("discount", [0.0, 0.7, 0.95])
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("normalised", [False, True])
def test_any_q_gives_the_value_in_expectation_where_nothing_is_left_after_the_last_step(problem, discount, normalised):
    """Over all trajectories, with a random Q: what is left is V's error at the cut, and nothing where all episodes end."""
    mdp, target, behavior, terminal = problem()
    data = every_trajectory(mdp, behavior, 4, terminal)
    episodes = Episodes.of("DR", data)
    ratios = importance_ratios("DR", data, gd.TabularPolicy(target), None)
    weights = StepWeights.of("DR", discount, episodes, ratios, normalised=normalised)
    q = np.random.default_rng(5).normal(size=target.shape)
    v = np.where(np.isin(np.arange(len(q)), terminal), 0.0, np.sum(target * q, axis=1))
    residual = data.rewards + discount * v[data.next_states] - q[data.states, data.actions]
    first = np.average(v[data.states[episodes.first]], weights=episodes.weights)
    chain, dist = np.einsum("sa,sat->st", target, mdp.transition), mdp.initial
    for _ in range(4):
        dist = dist @ chain
    expected = finite_value(mdp, target, discount, 4) + (1 - discount) * discount**4 * dist @ v
    assert (1 - discount) * first + weights.total(residual) == pytest.approx(expected, abs=1e-12)
    if problem is ladder:
        assert expected == pytest.approx(mdp.value(target, discount), abs=1e-12)


@pytest.fixture
def copies(monkeypatch):
    """Folds that are copies of all trajectories: each fit then sees the population."""

    def create(data, count, seed):
        kind = data.episodes % count
        numbers = np.unique(data.episodes)
        return Folds(kind, numbers % count, count)

    monkeypatch.setattr(Folds, "create", create)

    def make(problem, horizon):
        mdp, target, behavior, terminal = problem
        data = every_trajectory(mdp, behavior, horizon, terminal)
        rows = np.tile(np.arange(len(data)), 2)
        return take(data, rows, episodes=np.concatenate([2 * data.episodes, 2 * data.episodes + 1]))

    return make


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("kind", THREE)
def test_the_population_answer_is_the_infinite_horizon_value(kind, problem, copies):
    """A table's Q is right, so that V makes up for what the log does not show."""
    mdp, target, _, _ = problem()
    found = answer(kind(0.9, folds=2), copies(problem(), 3), target)
    assert found.value == pytest.approx(mdp.value(target, 0.9), abs=1e-11)
    assert found.mean_ratio == pytest.approx(1, abs=1e-12)
    assert any("were cut" in note for note in found.notes) == (problem is not ladder)


@pytest.mark.parametrize("kind", TWO)
def test_a_wrong_q_does_no_harm_where_episodes_end(kind, copies):
    """With a constant as the only feature Q is far off; MAGIC alone may lean on it."""
    mdp, target, _, _ = ladder()
    constant = gd.LinearFeatures(lambda states, actions: np.ones((len(states), 1)))
    data = copies(ladder(), 3)
    found = answer(kind(0.9, folds=2), data, target, constant)
    assert found.value == pytest.approx(mdp.value(target, 0.9), abs=1e-12)
    plain = gd.LSTDQ(0.9).answer(data, gd.TabularPolicy(target), constant, 0)
    assert abs(plain.value - found.value) > 0.005


@pytest.mark.parametrize("problem", PROBLEMS)
def test_agrees_with_the_recursion_over_episodes(problem):
    _, target, _, _ = problem()
    rng = np.random.default_rng(3)
    data = rolled(problem(), 80, 5, seed=1)
    weight = rng.uniform(0.5, 2.0, size=80)
    data = replace(data, episodes=13 - 2 * data.episodes, weights=weight[data.episodes])
    folds = Folds.create(data, 4, 0)
    tables = fold_q(data, target, 0.9, folds, 2)
    assert answer(gd.DR(0.9), data, target).value == pytest.approx(
        doubly_robust(data, target, 0.9, folds, tables), rel=1e-9
    )
    returns = j_step_returns(data, target, 0.9, folds, tables)
    assert answer(gd.WDR(0.9), data, target).value == pytest.approx(returns[-1], rel=1e-9)
    assert returns.min() - 1e-12 <= answer(gd.MAGIC(0.9), data, target).value <= returns.max() + 1e-12


@pytest.mark.parametrize("problem", PROBLEMS)
def test_magic_blends_the_returns_of_the_paper(problem, monkeypatch):
    """Each return alone, by putting the blend where it is."""
    _, target, _, _ = problem()
    data = rolled(problem(), 60, 4, seed=2)
    folds = Folds.create(data, 4, 0)
    returns = j_step_returns(data, target, 0.9, folds, fold_q(data, target, 0.9, folds, 2))
    for number, value in enumerate(returns):
        monkeypatch.setattr("gradientdice.related.magic.simplex_minimum", lambda m, k=number: np.eye(len(m))[k])
        found = answer(gd.MAGIC(0.9), data, target)
        assert found.value == pytest.approx(value, rel=1e-9)
        assert (found.ratio[Episodes.of("", data).step >= number] == 0).all()


class TestMagicBlend:
    def test_minimum_over_the_simplex(self):
        rng = np.random.default_rng(0)
        for size in (1, 2, 5, 12):
            root = rng.normal(size=(size, size)) + 1.0
            matrix = root.T @ root * 10.0 ** rng.integers(-8, 8)
            x = simplex_minimum(matrix)
            assert (x >= 0).all() and x.sum() == pytest.approx(1)
            scaled = matrix / np.trace(matrix)
            best = min(
                float(
                    minimize(
                        lambda z, m=scaled: (s := np.exp(z - z.max()) / np.exp(z - z.max()).sum()) @ m @ s, start
                    ).fun
                )
                for start in rng.normal(size=(5, size))
            )
            assert x @ scaled @ x <= best + 1e-9
        # Returns whose variances differ by many orders, as those of long products do.
        for seed in range(20):
            steps = np.random.default_rng(seed).normal(size=(200, 15)) * np.geomspace(1e-3, 1e3, 15)
            matrix = np.cov(np.cumsum(steps, axis=1).T)
            x = simplex_minimum(matrix)
            gradient = matrix @ x
            assert gradient.min() >= x @ gradient * (1 - 1e-5)
        assert simplex_minimum(np.zeros((3, 3))).tolist() == [0, 0, 1]
        assert simplex_minimum(np.diag([1.0, 0.0])).tolist() == [0, 1]

    def test_covariance_and_bootstrap_are_those_of_simulated_logs(self):
        """Ω against the covariance of the returns over logs with the same Q; the bootstrap against WDR's own spread."""
        from gradientdice.related import magic

        problem = leak()
        _, target, _, _ = problem
        q = np.random.default_rng(1).normal(size=(4, 2))
        returns, covariances, spreads = [], [], []
        for seed in range(300):
            data = rolled(problem, 100, 4, seed)
            weights, scores = _with_q(data, target, q)
            lengths = np.arange(5)
            returns.append(magic._returns(weights, scores, lengths))
            covariances.append(magic._covariance(weights, scores, lengths))
            if seed < 20:
                spreads.append(magic._resampled(weights, scores, 200, np.random.default_rng(seed)).std())
        truth = np.cov(np.array(returns).T)
        np.testing.assert_allclose(np.mean(covariances, axis=0), truth, atol=0.2 * truth.max())
        assert np.mean(spreads) == pytest.approx(np.sqrt(truth[-1, -1]), rel=0.15)

    def test_leans_on_a_right_model_and_leaves_a_wrong_one(self):
        mdp, target, behavior, terminal = leak()
        mdp = gd.mdp.TabularMDP(mdp.transition, np.where(mdp.reward == 0, 0, mdp.reward + 3), mdp.initial)
        data = rolled((mdp, target, behavior, terminal), 2000, 5, 0)
        constant = gd.LinearFeatures(lambda states, actions: np.ones((len(states), 1)))
        right, wrong = answer(gd.MAGIC(0.9), data, target), answer(gd.MAGIC(0.9), data, target, constant)
        model = {True: _model_share(right), False: _model_share(wrong)}
        assert model[True] > 0.5 and model[False] < 0.05
        assert abs(wrong.value - mdp.value(target, 0.9)) < 0.3 * abs(
            gd.LSTDQ(0.9).answer(data, gd.TabularPolicy(target), constant, 0).value - mdp.value(target, 0.9)
        )

    def test_few_lengths_of_a_long_horizon(self):
        _, target, _, _ = loop()
        data = rolled(loop(), 200, 60, 0)
        few, all_of_them = (answer(gd.MAGIC(0.9, returns=count), data, target).value for count in (8, 61))
        assert few == pytest.approx(all_of_them, abs=0.02)


def _model_share(found):
    return float(found.notes[-1].split("gives ")[1].split(" to")[0])


def _with_q(data, target, q):
    """Step weights, and something with the scores of a fixed Q in the place of a fitted one."""
    from types import SimpleNamespace

    episodes = Episodes.of("", data)
    ratios = importance_ratios("", data, gd.TabularPolicy(target), None)
    weights = StepWeights.of("", 0.9, episodes, ratios, normalised=True)
    v = np.sum(target * q, axis=1)
    after = np.where(data.terminated, 0.0, v[data.next_states])
    residual = data.rewards + 0.9 * after - q[data.states, data.actions]
    return weights, SimpleNamespace(
        first_values=v[data.states[episodes.first]], scores=SimpleNamespace(residual=residual)
    )


@pytest.mark.parametrize("kind", TWO)
@pytest.mark.parametrize("problem, discount", [(ladder, 0.9), (loop, 0.8), (loop, 0.97), (leak, 0.9)])
def test_intervals_cover_the_infinite_horizon_value(kind, problem, discount):
    mdp, target, _, _ = problem()
    truth, values, errors, covered = mdp.value(target, discount), [], [], 0
    for seed in range(200):
        data = rolled(problem(), 100, 4, seed)
        found = answer(kind(discount), data, target)
        samples = independent_shares(found.shares, data)
        assert sum(float(part.sum()) for part in samples) == pytest.approx(0, abs=1e-10)
        low, high = NormalInterval().interval(found.value, samples, 0.95, 0)
        covered += low < truth < high
        values.append(found.value)
        errors.append(standard_error(samples))
    assert 0.9 <= covered / 200 <= 0.99
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.2)


def test_where_episodes_are_cut_the_error_of_v_belongs_in_the_interval():
    """Without the shares through Q's fit the standard error is a fraction of what it should be."""
    problem = loop()
    _, target, _, _ = problem
    data = rolled(problem, 300, 4, 0)
    found = answer(gd.DR(0.97), data, target)
    weights = _weights(data, target, 0.97)
    q = CrossFittedQ.of("DR", data, gd.TabularPolicy(target), gd.Tabular(3, 2), 0.97, 4, 0)
    values = 0.03 * q.first_values / 300
    alone = replace(found.shares, rows=weights.shares(q.scores.residual), initial=values - values.mean())
    assert standard_error(independent_shares(alone, data)) < 0.5 * standard_error(
        independent_shares(found.shares, data)
    )


def _weights(data, target, discount):
    episodes = Episodes.of("", data)
    return StepWeights.of(
        "", discount, episodes, importance_ratios("", data, gd.TabularPolicy(target), None), normalised=False
    )


@pytest.mark.parametrize("kind", THREE)
def test_the_error_falls_as_one_over_the_root_of_the_number_of_episodes(kind):
    problem = leak()
    mdp, target, _, _ = problem
    truth = mdp.value(target, 0.9)
    sizes = [60, 240, 960]
    errors = [
        [answer(kind(0.9), rolled(problem, size, 5, seed=1000 * size + k), target).value - truth for k in range(40)]
        for size in sizes
    ]
    slope = np.polyfit(np.log(sizes), np.log(np.sqrt(np.mean(np.square(errors), axis=1))), 1)[0]
    assert -0.7 < slope < -0.3


def test_a_good_q_lowers_the_variance():
    _, target, _, _ = loop()
    data = rolled(loop(), 300, 12, 0)
    errors = {
        kind: gd.evaluate(data, gd.TabularPolicy(target), kind(0.8)).standard_error for kind in (gd.IS, gd.PDIS, *TWO)
    }
    assert errors[gd.DR] < errors[gd.PDIS] < errors[gd.IS] and errors[gd.WDR] < errors[gd.PDIS]


@pytest.mark.parametrize("kind", THREE)
class TestInvariances:
    def test_doubled_weights_and_renamed_episodes(self, kind):
        _, target, _, _ = leak()
        data = rolled(leak(), 40, 6, 0)
        first = answer(kind(0.9), data, target).value
        assert answer(kind(0.9), replace(data, weights=np.full(len(data), 2.0)), target).value == pytest.approx(first)
        again = answer(kind(0.9), replace(data, episodes=data.episodes * 3 - 7), target).value
        assert again == pytest.approx(first, rel=1e-12)

    def test_renamed_states(self, kind):
        _, target, _, _ = loop()
        data, order = rolled(loop(), 40, 6, 0), np.array([2, 0, 1])
        renamed = replace(data, states=order[data.states], next_states=order[data.next_states])
        moved = np.empty_like(target)
        moved[order] = target
        assert answer(kind(0.9), renamed, moved).value == pytest.approx(answer(kind(0.9), data, target).value, rel=1e-9)

    def test_a_shifted_reward_shifts_the_value(self, kind):
        """Where nothing ends: Q takes all of the shift, and the residuals none."""
        _, target, _, _ = loop()
        data = rolled(loop(), 40, 6, 0)
        first, second = (answer(kind(0.9), replace(data, rewards=data.rewards + c), target).value for c in (0.0, 2.0))
        assert second - first == pytest.approx(2, rel=1e-9)

    def test_given_initial_states_play_no_part(self, kind):
        _, target, _, _ = loop()
        data = rolled(loop(), 40, 6, 0)
        first, second = (answer(kind(0.9), log, target).value for log in (data, replace(data, initial_states=[0])))
        assert first == second

    def test_estimated_behaviour(self, kind, copies):
        mdp, target, _, _ = leak()
        data = copies(leak(), 3)
        found = answer(kind(0.9, gd.BehaviorCloning(), 2), replace(data, behavior_log_probs=None), target)
        assert found.value == pytest.approx(mdp.value(target, 0.9), abs=1e-11)


@pytest.mark.parametrize("kind", THREE)
def test_refusals_and_their_rows_in_compare(kind):
    _, target, _, _ = loop()
    data = rolled(loop(), 40, 6, 0)
    policy, name = gd.TabularPolicy(target), kind.__name__
    lacking = {
        "no episodes": replace(data, episodes=None, initial_states=[0, 1, 2]),
        "behavior_log_probs, or .*BehaviorCloning": replace(data, behavior_log_probs=None),
        "same for all rows": replace(data, weights=np.arange(1.0, len(data) + 1)),
    }
    for words, log in lacking.items():
        with pytest.raises(gd.InputError, match=words):
            gd.evaluate(log, policy, kind(0.9))
        table = gd.compare(log, policy, [gd.GradientDICE(0.9), kind(0.9)])
        (note,) = table.loc[table["estimator"].str.startswith(name + "("), "note"]
        assert note.startswith(f"not applicable: {name} ")
    with pytest.raises(gd.InputError, match="discount below 1"):
        gd.evaluate(data, policy, kind(1.0))
    with pytest.raises(gd.InputError, match="at least 4 independent units|one: give more"):
        gd.evaluate(take(data, np.arange(6)), policy, kind(0.9))
    with pytest.raises(gd.InputError, match="linear functions"):
        gd.evaluate(data, policy, kind(0.9), functions=gd.MLP())
    # An action that the policy takes and no fold but one has seen.
    seen = np.where(data.episodes == 0, data.actions, 0)
    with pytest.raises(gd.InputError, match=f"{name} fits Q with a part of the log left out"):
        gd.evaluate(replace(data, actions=seen), policy, kind(0.9))
    for field in ("folds", "returns", "replications"):
        if hasattr(kind(0.9), field):
            with pytest.raises(gd.InputError, match=field):
                replace(kind(0.9), **{field: 1})
    for field in ("discount", "bias_confidence"):
        for bad in (-1.0, float("nan"), 1.5):
            if hasattr(kind(0.9), field):
                with pytest.raises(gd.InputError, match=field):
                    replace(kind(0.9), **{field: bad})


@pytest.mark.parametrize("kind", THREE)
def test_degenerate_logs(kind):
    """Discount 0; one state with one action, where nothing varies; a target that leaves most episodes."""
    mdp, target, _, _ = leak()
    data = rolled(leak(), 400, 30, 0)
    found = gd.evaluate(data, gd.TabularPolicy(target), kind(0.0))
    assert found.value == pytest.approx(mdp.value(target, 0.0), abs=0.15)
    sure = gd.mdp.TabularMDP(np.ones((1, 1, 1)), np.full((1, 1), 2.0), np.ones(1))
    data = sure.rollout(np.ones((1, 1)), 10, 3, np.random.default_rng(0))
    found = gd.evaluate(data, gd.TabularPolicy(np.ones((1, 1))), kind(0.9))
    assert found.value == pytest.approx(2, rel=1e-12)
    only = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    mdp, _, behavior, _ = loop()
    found = gd.evaluate(rolled(loop(), 400, 5, 0), gd.TabularPolicy(only), kind(0.8))
    assert found.value == pytest.approx(mdp.value(only, 0.8), abs=0.1) and found.status.ok


@pytest.mark.parametrize("kind", THREE)
def test_vector_states(kind):
    """Kernel features of states that stand for a table's: near the table's answer, with an estimated behaviour."""
    mdp, target, _, _ = leak()
    data = rolled(leak(), 300, 5, 0)
    where = np.array([[-1.0, 0.0], [0.5, 1.0], [1.0, -1.0], [9.0, 9.0]])
    moved = replace(data, states=where[data.states], next_states=where[data.next_states], behavior_log_probs=None)

    def probabilities(states):
        return target[np.argmin(((states[:, None] - where) ** 2).sum(axis=2), axis=1)]

    policy = gd.DiscretePolicy(probabilities, 2)
    first = gd.evaluate(
        moved, policy, kind(0.9, behavior=gd.BehaviorCloning(ridge=1e-8)), functions=gd.RandomFourier(20)
    )
    cloned = replace(data, behavior_log_probs=None)
    second = gd.evaluate(cloned, gd.TabularPolicy(target), kind(0.9, behavior=gd.BehaviorCloning()))
    assert first.value == pytest.approx(second.value, abs=2e-3)
