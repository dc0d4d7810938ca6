"""DR and WDR: exact expectations by enumeration, the recursion as loops, coverage where episodes end and are cut."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.estimators.behavior import Episodes, importance_ratios
from gradientdice.estimators.doubly_robust.cross_fitted_q import CrossFittedQ
from gradientdice.estimators.trajectory.step_weights import StepWeights
from gradientdice.problem.folds import Folds
from gradientdice.statistics.intervals import NormalInterval, independent_shares, standard_error
from problems import known, ladder, leak, loop, rolled, single, take
from reference.trajectories import doubly_robust, every_trajectory, finite_value, fold_q, j_step_returns

THREE = [gd.DR, gd.WDR, gd.MAGIC]


TWO = [gd.DR, gd.WDR]


PROBLEMS = [loop, ladder, leak, single]


def answer(estimator, data, target, functions=None, seed=0):
    return estimator.answer(gd.Problem(data, gd.TabularPolicy(target), functions or gd.Tabular(*target.shape), seed))


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
        return take(data, rows, episodes=np.concatenate([2 * known(data.episodes), 2 * known(data.episodes) + 1]))

    return make


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("kind", THREE)
def test_the_population_answer_is_the_infinite_horizon_value(kind, problem, copies):
    """A table's Q is right, so that V makes up for what the log does not show."""
    mdp, target, _, _ = problem()
    found = answer(kind(0.9, folds=2), copies(problem(), 3), target)
    assert found.value == pytest.approx(mdp.value(target, 0.9), abs=1e-11)
    assert found.evidence.mean_ratio == pytest.approx(1, abs=1e-12)
    assert any("were cut" in note for note in found.notes) == (problem is not ladder)


@pytest.mark.parametrize("kind", TWO)
def test_a_wrong_q_does_no_harm_where_episodes_end(kind, copies):
    """With a constant as the only feature Q is far off; MAGIC alone may lean on it."""
    mdp, target, _, _ = ladder()
    constant = gd.LinearFeatures(lambda states, actions: np.ones((len(states), 1)))
    data = copies(ladder(), 3)
    found = answer(kind(0.9, folds=2), data, target, constant)
    assert found.value == pytest.approx(mdp.value(target, 0.9), abs=1e-12)
    plain = gd.LSTDQ(0.9).answer(gd.Problem(data, gd.TabularPolicy(target), constant, 0))
    assert abs(plain.value - found.value) > 0.005


@pytest.mark.parametrize("problem", PROBLEMS)
def test_agrees_with_the_recursion_over_episodes(problem):
    _, target, _, _ = problem()
    rng = np.random.default_rng(3)
    data = rolled(problem(), 80, 5, seed=1)
    weight = rng.uniform(0.5, 2.0, size=80)
    data = replace(data, episodes=13 - 2 * known(data.episodes), weights=weight[data.episodes])
    folds = Folds.create(data, 4, 0)
    tables = fold_q(data, target, 0.9, folds, 2)
    assert answer(gd.DR(0.9), data, target).value == pytest.approx(
        doubly_robust(data, target, 0.9, folds, tables), rel=1e-9
    )
    returns = j_step_returns(data, target, 0.9, folds, tables)
    assert answer(gd.WDR(0.9), data, target).value == pytest.approx(returns[-1], rel=1e-9)
    assert returns.min() - 1e-12 <= answer(gd.MAGIC(0.9), data, target).value <= returns.max() + 1e-12


SLOW = pytest.mark.slow


@pytest.mark.slow
@pytest.mark.parametrize("kind", TWO)
@pytest.mark.parametrize(
    "problem, discount", [pytest.param(ladder, 0.9, marks=SLOW), (loop, 0.97), pytest.param(leak, 0.9, marks=SLOW)]
)
def test_intervals_cover_the_infinite_horizon_value(kind, problem, discount):
    mdp, target, _, _ = problem()
    truth, values, errors, covered = mdp.value(target, discount), [], [], 0
    for seed in range(150):
        data = rolled(problem(), 100, 4, seed)
        found = answer(kind(discount), data, target)
        samples = independent_shares(found.influence, data)
        assert sum(float(part.sum()) for part in samples) == pytest.approx(0, abs=1e-10)
        low, high = NormalInterval().interval(found.value, samples, 0.95, 0)
        covered += low < truth < high
        values.append(found.value)
        errors.append(standard_error(samples))
    assert 0.9 <= covered / 150 <= 0.99
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.2)


def test_where_episodes_are_cut_the_error_of_v_belongs_in_the_interval():
    """Without the shares through Q's fit the standard error is a fraction of what it should be."""
    problem = loop()
    _, target, _, _ = problem
    data = rolled(problem, 300, 4, 0)
    found = answer(gd.DR(0.97), data, target)
    weights = _weights(data, target, 0.97)
    q = CrossFittedQ.of("DR", gd.Problem(data, gd.TabularPolicy(target), gd.Tabular(3, 2)), 0.97, 4)
    values = 0.03 * q.first_values / 300
    alone = replace(known(found.influence), rows=weights.shares(q.residual), initial=values - values.mean())
    assert standard_error(independent_shares(alone, data)) < 0.5 * standard_error(
        independent_shares(known(found.influence), data)
    )


def _weights(data, target, discount):
    episodes = Episodes.of("", data)
    return StepWeights.of(
        "", discount, episodes, importance_ratios("", data, gd.TabularPolicy(target), None), normalised=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", THREE)
def test_the_error_falls_as_one_over_the_root_of_the_number_of_episodes(kind):
    problem = leak()
    mdp, target, _, _ = problem
    truth = mdp.value(target, 0.9)
    sizes = [60, 240, 960]
    errors = [
        [answer(kind(0.9), rolled(problem, size, 5, seed=1000 * size + k), target).value - truth for k in range(30)]
        for size in sizes
    ]
    slope = np.polyfit(np.log(sizes), np.log(np.sqrt(np.mean(np.square(errors), axis=1))), 1)[0]
    assert -0.7 < slope < -0.3


def test_a_good_q_lowers_the_variance():
    _, target, _, _ = loop()
    data = rolled(loop(), 300, 12, 0)
    errors = {
        kind: known(gd.evaluate(data, gd.TabularPolicy(target), kind(0.8)).standard_error)
        for kind in (gd.IS, gd.PDIS, *TWO)
    }
    assert max(errors[gd.DR], errors[gd.WDR]) < errors[gd.PDIS] < errors[gd.IS]


@pytest.mark.parametrize("kind", THREE)
class TestInvariances:
    def test_doubled_weights_and_renamed_episodes(self, kind):
        _, target, _, _ = leak()
        data = rolled(leak(), 40, 6, 0)
        first = answer(kind(0.9), data, target).value
        assert answer(kind(0.9), replace(data, weights=np.full(len(data), 2.0)), target).value == pytest.approx(first)
        again = answer(kind(0.9), replace(data, episodes=known(data.episodes) * 3 - 7), target).value
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
    few = "MAGIC weighs noise against bias" if kind is gd.MAGIC else "at least 4 independent units"
    with pytest.raises(gd.InputError, match=few):
        gd.evaluate(take(data, np.arange(6)), policy, kind(0.9))
    with pytest.raises(gd.InputError, match="linear functions"):
        gd.evaluate(data, policy, kind(0.9), functions=gd.MLP())
    # An action that the policy takes and no fold but one has seen.
    seen = np.where(data.episodes == 0, data.actions, 0)
    features = gd.LinearFeatures(lambda s, a: np.eye(6)[2 * s + a])
    with pytest.raises(gd.InputError, match="With a part of the log left out"):
        gd.evaluate(replace(data, actions=seen), policy, kind(0.9), functions=features)
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
