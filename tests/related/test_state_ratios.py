"""COP-TD, discounted COP-TD, BCH and GEM: state ratios that know the behaviour policy."""

from dataclasses import fields, replace
from itertools import product

import numpy as np
import pytest

import gradientdice as gd
from conftest import random_problem
from gradientdice.related.state_answer import solve_flow
from gradientdice.related.state_features import state_log
from gradientdice.related.state_flow import StateFlow
from reference import state_ratios as reference

# Rational initial distributions, since initial states are not weighted.
STARTS = np.array([0, 0, 0, 1, 2, 2, 3, 4])


def with_starts(mdp, starts=STARTS):
    initial = np.bincount(starts, minlength=mdp.num_states) / len(starts)
    return gd.mdp.TabularMDP(mdp.transition, mdp.reward, initial)


def every_transition(mdp, data_dist, starts=STARTS, terminal=None):
    """The population: each (s, a, s') once, with its probability for weight; `terminal` is a state that ends episodes."""
    rows = [
        (s, a, t, data_dist[s, a] * mdp.transition[s, a, t])
        for s, a, t in product(range(mdp.num_states), range(mdp.num_actions), range(mdp.num_states))
        if s != terminal
    ]
    s, a, t = (np.array([row[i] for row in rows]) for i in range(3))
    behavior = data_dist / data_dist.sum(axis=1, keepdims=True).clip(1e-300)
    return gd.Transitions(
        s,
        a,
        mdp.reward[s, a],
        t,
        initial_states=starts,
        terminated=None if terminal is None else t == terminal,
        weights=[row[3] for row in rows],
        behavior_log_probs=np.log(behavior[s, a]),
    )


def every_trajectory(mdp, behavior, horizon, terminal=None):
    """All trajectories of a few steps, each an episode with its probability for weight."""
    rows, chances = [], []

    def extend(path, state, chance):
        ended = bool(path) and path[-1][3]
        if ended or len(path) == horizon:
            rows.append(path)
            chances.append(chance)
            return
        for a, t in product(range(mdp.num_actions), range(mdp.num_states)):
            step = behavior[state, a] * mdp.transition[state, a, t]
            if step > 0:
                extend([*path, (state, a, t, t == terminal)], t, chance * step)

    for start in np.flatnonzero(mdp.initial):
        extend([], start, mdp.initial[start])
    flat = np.array([row for path in rows for row in path], dtype=int)
    s, a, t, ended = flat.T
    episodes = np.repeat(np.arange(len(rows)), [len(path) for path in rows])
    return gd.Transitions(
        s,
        a,
        mdp.reward[s, a],
        t,
        initial_states=np.repeat(np.arange(mdp.num_states), np.round(8 * mdp.initial).astype(int)),
        terminated=ended.astype(bool),
        episodes=episodes,
        weights=np.array(chances)[episodes],
        behavior_log_probs=np.log(behavior[s, a]),
    )


def terminating(seed, states=5):
    """A random MDP whose last state ends the episode, and the chains that the library makes of it."""
    mdp, target, data_dist = random_problem(seed, states)
    transition, reward = np.array(mdp.transition), np.array(mdp.reward)
    starts = np.array([0, 0, 0, 1, 2, 2, 3, 3])
    initial = np.bincount(starts, minlength=states) / 8
    transition[-1], reward[-1] = 0.0, 0.0
    transition[-1, :, -1] = 1
    absorbed = gd.mdp.TabularMDP(transition, reward, initial)
    # At discount 1 the end is skipped: what would lead there leads to an initial state.
    again = transition[:-1, :, :-1] + transition[:-1, :, -1:] * initial[:-1]
    restarted = gd.mdp.TabularMDP(again, reward[:-1], initial[:-1])
    data_dist = np.array(data_dist)
    data_dist[-1] = 0
    return absorbed, restarted, target, data_dist / data_dist.sum(), starts


def rollout_with_ends(seed, episodes=300, horizon=40):
    """A log whose episodes end in the last state or are cut, interleaved and oddly numbered."""
    absorbed, _, target, data_dist, _ = terminating(seed)
    behavior = np.full((5, 2), 0.5)
    log = absorbed.rollout(behavior, episodes, horizon, np.random.default_rng(seed))
    before = log.states != 4
    ended = log.next_states == 4
    keep = np.flatnonzero(before)
    order = keep[np.argsort(log.truncated[keep], kind="stable")]
    return (
        absorbed,
        target,
        gd.Transitions(
            log.states[order],
            log.actions[order],
            log.rewards[order],
            log.next_states[order],
            terminated=ended[order],
            episodes=17 - 3 * log.episodes[order],
            behavior_log_probs=log.behavior_log_probs[order],
        ),
    )


def answer(estimator, data, target, functions=None, seed=0):
    functions = gd.Tabular(*np.shape(target)) if functions is None else functions
    return estimator.answer(data, gd.TabularPolicy(target), functions, seed)


AVERAGE = [gd.COPTD(1.0), gd.BCH(1.0), gd.DiscountedCOPTD(1.0)]
PLAIN = [gd.GEM(0.9, self_normalised=False), gd.DiscountedCOPTD(0.9, self_normalised=False)]
DISCOUNTED = [gd.GEM(0.9), gd.DiscountedCOPTD(0.9), *PLAIN]
EVERY = [*AVERAGE, *DISCOUNTED, gd.BCH(0.9)]


class TestPopulation:
    """Each estimator's own fixed point, exactly, on the whole population."""

    @pytest.mark.parametrize("estimator", AVERAGE, ids=repr)
    @pytest.mark.parametrize("seed", range(3))
    def test_average_reward(self, estimator, seed):
        mdp, target, data_dist = random_problem(seed)
        found = answer(estimator, every_transition(mdp, data_dist), target)
        assert found.value == pytest.approx(mdp.value(target, 1.0), abs=1e-12)
        assert found.mean_ratio == pytest.approx(1, abs=1e-12)

    @pytest.mark.parametrize("estimator", AVERAGE, ids=repr)
    def test_average_reward_of_boyans_chain(self, estimator):
        mdp, target = gd.mdp.boyan_chain("continuing"), np.tile([0.1, 0.9], (13, 1))
        data = every_transition(mdp, np.full((13, 2), 1 / 26), np.arange(13))
        assert answer(estimator, data, target).value == pytest.approx(mdp.value(target, 1.0), abs=1e-11)

    @pytest.mark.parametrize("estimator", AVERAGE, ids=repr)
    @pytest.mark.parametrize("seed", range(3))
    def test_average_reward_with_restarts(self, estimator, seed):
        absorbed, restarted, target, data_dist, starts = terminating(seed)
        found = answer(estimator, every_transition(absorbed, data_dist, starts, terminal=4), target)
        assert found.value == pytest.approx(restarted.value(target[:-1], 1.0), abs=1e-12)

    @pytest.mark.parametrize("estimator", DISCOUNTED, ids=repr)
    @pytest.mark.parametrize("discount", [0.0, 0.5, 0.9, 0.99])
    @pytest.mark.parametrize("seed", range(3))
    def test_discounted(self, estimator, discount, seed):
        """GEM starts from the initial states, discounted COP-TD from the log's."""
        mdp, target, data_dist = random_problem(seed)
        mdp = with_starts(mdp)
        data = every_transition(mdp, data_dist)
        own = gd.mdp.TabularMDP(mdp.transition, mdp.reward, data_dist.sum(axis=1))
        chain = own if isinstance(estimator, gd.DiscountedCOPTD) else mdp
        found = answer(replace(estimator, discount=discount), data, target)
        assert found.value == pytest.approx(chain.value(target, discount), abs=1e-12)
        pairs = data.states * 2 + data.actions
        ratio = chain.ratio(target, discount, data_dist).ravel()[pairs]
        np.testing.assert_allclose(found.ratio, ratio, atol=1e-10)

    @pytest.mark.parametrize("estimator", DISCOUNTED, ids=repr)
    @pytest.mark.parametrize("seed", range(3))
    def test_discounted_with_ends(self, estimator, seed):
        absorbed, _, target, data_dist, starts = terminating(seed)
        own = gd.mdp.TabularMDP(absorbed.transition, absorbed.reward, data_dist.sum(axis=1))
        chain = own if isinstance(estimator, gd.DiscountedCOPTD) else absorbed
        found = answer(estimator, every_transition(absorbed, data_dist, starts, terminal=4), target)
        assert found.value == pytest.approx(chain.value(target, 0.9), abs=1e-12)
        assert found.mean_ratio == pytest.approx(1, abs=1e-12)

    @pytest.mark.parametrize("discount", [0.0, 0.5, 0.9, 0.99])
    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("terminal", [None, 2])
    def test_bch_on_every_trajectory(self, discount, seed, terminal):
        """Trajectories of only three steps, at which γᵗ is far from 0: cut trajectories do no harm."""
        mdp, target, data_dist = random_problem(seed, states=3)
        transition, reward = np.array(mdp.transition), np.array(mdp.reward)
        if terminal is not None:
            transition[terminal], reward[terminal] = np.eye(3)[terminal], 0.0
        mdp = gd.mdp.TabularMDP(transition, reward, [0.625, 0.375, 0.0] if terminal else [0.5, 0.25, 0.25])
        behavior = data_dist / data_dist.sum(axis=1, keepdims=True)
        data = every_trajectory(mdp, behavior, 3, terminal)
        found = answer(gd.BCH(discount), data, target)
        assert found.value == pytest.approx(mdp.value(target, discount), abs=1e-11)
        assert found.mean_ratio == pytest.approx(1, abs=1e-11)
        assert np.average(found.ratio * data.rewards, weights=data.weights) == pytest.approx(found.value, abs=1e-12)

    @pytest.mark.parametrize("seed", range(3))
    def test_bch_ratio_is_against_the_discounted_visitation(self, seed):
        mdp, target, data_dist = random_problem(seed, states=3)
        mdp = gd.mdp.TabularMDP(mdp.transition, mdp.reward, [0.5, 0.25, 0.25])
        behavior = data_dist / data_dist.sum(axis=1, keepdims=True)
        data = every_trajectory(mdp, behavior, 3)
        step = np.tile(np.arange(3), len(data) // 3)
        logged = np.bincount(data.states, weights=data.weights * 0.8**step)
        visits = mdp.occupancy(target, 0.8).sum(axis=1) / (logged / logged.sum())
        np.testing.assert_allclose(answer(gd.BCH(0.8), data, target).solution.ratio_params, visits, rtol=1e-10)


class TestReference:
    """On logs of which the published forms are right, they are the library's."""

    @staticmethod
    def closed(seed, episodes=60):
        """Episodes that all end: with restarts, states and next states are distributed alike."""
        _, target, log = rollout_with_ends(seed, episodes, 400)
        last = {episode: row for row, episode in enumerate(log.episodes)}
        assert log.terminated[list(last.values())].all()
        starts = log.start_states
        at_end = [(state, 1 / len(starts)) for state in starts]
        following = [at_end if end else [(t, 1.0)] for t, end in zip(log.next_states, log.terminated, strict=True)]
        importance = target[log.states, log.actions] / 0.5
        return log, target, importance, following

    @pytest.mark.parametrize("seed", range(3))
    def test_cop_td(self, seed):
        log, target, importance, following = self.closed(seed)
        value, c = reference.cop_td(log.states, importance, log.rewards, following, 4)
        found = answer(gd.COPTD(1.0), log, target)
        assert found.value == pytest.approx(value, abs=1e-10)
        np.testing.assert_allclose(found.solution.ratio_params[:4], c, atol=1e-10)

    @pytest.mark.parametrize("seed", range(3))
    def test_bch_average(self, seed):
        mdp, target, _ = random_problem(seed)
        log = mdp.rollout(np.full((5, 2), 0.5), 1, 300, np.random.default_rng(seed))
        nexts = np.append(log.states[1:], log.states[0])  # a circle
        log = replace(log, next_states=nexts)
        importance = target[log.states, log.actions] / 0.5
        value, w = reference.bch(log.states, importance, log.rewards, nexts, np.ones(300), [0], 5, 1.0)
        found = answer(gd.BCH(1.0), log, target)
        assert found.value == pytest.approx(value, abs=1e-10)
        np.testing.assert_allclose(found.solution.ratio_params, w, atol=1e-10)

    @pytest.mark.parametrize("seed", range(3))
    def test_bch_discounted_with_trajectories_too_long_to_be_cut(self, seed):
        mdp, target, _ = random_problem(seed)
        log = mdp.rollout(np.full((5, 2), 0.5), 30, 60, np.random.default_rng(seed))
        importance = target[log.states, log.actions] / 0.5
        weights = 0.5 ** np.tile(np.arange(60), 30)
        starts = log.states[::60]
        value, w = reference.bch(log.states, importance, log.rewards, log.next_states, weights, starts, 5, 0.5)
        found = answer(gd.BCH(0.5), log, target)
        assert found.value == pytest.approx(value, abs=1e-10)
        np.testing.assert_allclose(found.solution.ratio_params, w, atol=1e-10)

    @pytest.mark.parametrize("discount", [0.5, 1.0])
    def test_bch_with_a_kernel_of_its_own(self, discount):
        mdp, target, _ = random_problem(4)
        log = mdp.rollout(np.full((5, 2), 0.5), 1, 300, np.random.default_rng(4))
        nexts = np.append(log.states[1:], log.states[0]) if discount == 1 else log.next_states
        log = replace(log, next_states=nexts)
        importance = target[log.states, log.actions] / 0.5
        tests = gd.RandomFourier(40, 0.5)
        one = gd.DiscretePolicy(lambda states: np.ones((len(states), 1)), 1)
        psi = tests.fitted(log, one).at(np.arange(5), np.zeros(5, dtype=int)).base
        weights, starts = discount ** np.arange(300.0), [log.states[0]]
        value, w = reference.bch(
            log.states, importance, log.rewards, nexts, weights, starts, 5, discount, kernel=psi @ psi.T
        )
        found = answer(gd.BCH(discount, tests), log, target)
        assert found.value == pytest.approx(value, abs=1e-9)
        np.testing.assert_allclose(found.solution.ratio_params, w, atol=1e-8)

    @pytest.mark.parametrize("seed", range(3))
    def test_discounted_cop_td(self, seed):
        mdp, target, _ = random_problem(seed)
        log = mdp.rollout(np.full((5, 2), 0.5), 1, 300, np.random.default_rng(seed))
        nexts = np.append(log.states[1:], log.states[0])
        log = replace(log, next_states=nexts)
        importance = target[log.states, log.actions] / 0.5
        following = [[(t, 1.0)] for t in nexts]
        value, c = reference.discounted_cop_td(log.states, importance, log.rewards, following, 5, 0.7)
        found = answer(gd.DiscountedCOPTD(0.7), log, target)
        assert found.value == pytest.approx(value, abs=1e-10)
        np.testing.assert_allclose(found.solution.ratio_params, c, atol=1e-10)

    @pytest.mark.parametrize("seed", range(3))
    def test_gem_with_too_few_features(self, seed):
        mdp, target, data_dist = random_problem(seed)
        behavior = data_dist / data_dist.sum(axis=1, keepdims=True)
        log = mdp.rollout(behavior, 50, 20, np.random.default_rng(seed))
        table = np.column_stack([np.ones(5), np.random.default_rng(seed).normal(size=(5, 2))])
        features = gd.LinearFeatures(lambda states, actions: table[states, 1:])
        importance = target[log.states, log.actions] * np.exp(-log.behavior_log_probs)
        value, c = reference.gem(
            table[log.states], table[log.next_states], importance, log.rewards, table[log.states[::20]], 0.8
        )
        found = answer(gd.GEM(0.8, self_normalised=False), log, target, features)
        assert found.value == pytest.approx(value, abs=1e-10)
        np.testing.assert_allclose(found.ratio, c * importance, atol=1e-10)


FEATURES = gd.LinearFeatures(lambda states, actions: np.column_stack([np.sin(states), states**2 / 9]))
CASES = [(estimator, functions) for estimator in EVERY for functions in (None, FEATURES)]
CASES += [(gd.BCH(d, gd.RandomFourier(7, 0.5)), FEATURES) for d in (0.9, 1.0)]


class TestShares:
    """Influence values against finite differences: what the value does when an observation counts a little more."""

    @pytest.mark.parametrize(("estimator", "functions"), CASES, ids=lambda case: type(case).__name__)
    def test_by_episode(self, estimator, functions):
        absorbed, target, log = rollout_with_ends(3, episodes=12, horizon=5)
        log = replace(log, initial_states=np.array([0, 1, 2, 2, 3]))
        found = answer(estimator, log, target, functions)
        assert found.shares is not None and np.abs(found.shares.rows).max() > 1e-4
        assert found.shares.rows.sum() == pytest.approx(0, abs=1e-12)
        for episode in np.unique(log.episodes)[:6]:
            own = log.episodes == episode
            values = [
                answer(estimator, replace(log, weights=1 + step * own), target, functions).value
                for step in (1e-5, -1e-5)
            ]
            slope = (values[0] - values[1]) / 2e-5
            assert found.shares.rows[own].sum() == pytest.approx(slope, rel=1e-5, abs=1e-7)

    @pytest.mark.parametrize("estimator", [*AVERAGE, *DISCOUNTED], ids=repr)
    def test_by_row(self, estimator):
        absorbed, target, log = rollout_with_ends(2, episodes=12, horizon=5)
        log = replace(log, initial_states=np.array([0, 1, 2, 2, 3]), weights=np.linspace(0.5, 2, len(log)))
        found = answer(estimator, log, target)
        for row in range(0, len(log), 7):
            own = np.arange(len(log)) == row
            values = [
                answer(estimator, replace(log, weights=log.weights * (1 + step * own)), target).value
                for step in (1e-5, -1e-5)
            ]
            assert found.shares.rows[row] == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-5, abs=1e-7)

    @pytest.mark.parametrize(
        "estimator", [e for e in EVERY if e.discount == 1 or type(e) is not gd.DiscountedCOPTD], ids=repr
    )
    def test_initial_states(self, estimator):
        absorbed, target, log = rollout_with_ends(3, episodes=12, horizon=5)
        starts, copies = np.array([0, 1, 2, 2, 3]), 3000
        found = answer(estimator, replace(log, initial_states=starts), target)
        many = np.repeat(starts, copies)
        base = answer(estimator, replace(log, initial_states=many), target).value
        assert base == pytest.approx(found.value, abs=1e-10)
        for index, start in enumerate(starts):
            more = answer(estimator, replace(log, initial_states=np.append(many, start)), target).value
            assert found.shares.initial[index] == pytest.approx((more - base) * copies, rel=1e-3, abs=1e-6)

    def test_of_a_value_that_is_not_self_normalised(self):
        """Where E[c] = 1 is asked for and the value E[ρcr] is not invariant to c's scale."""
        _, target, log = rollout_with_ends(3, episodes=12, horizon=5)
        importance = target[log.states, log.actions] / 0.5

        def fit(weights):
            flow = StateFlow.of(state_log("", log, 2, gd.Tabular(5, 2), weights), importance, 1.0)
            fit, _ = solve_flow(flow, flow.start, mean_one=True, normalised=False, rank_tolerance=0.0)
            return flow, fit, flow.value(fit.params, normalised=False)[0]

        flow, found, _ = fit(np.ones(len(log)))
        shares = flow.shares(found, normalised=False).rows
        for row in range(0, len(log), 5):
            own = np.arange(len(log)) == row
            slope = (fit(1 + 1e-5 * own)[2] - fit(1 - 1e-5 * own)[2]) / 2e-5
            assert shares[row] == pytest.approx(slope, rel=1e-5, abs=1e-8)

    def test_discounted_cop_td_has_no_shares_of_initial_states(self):
        _, target, log = rollout_with_ends(3)
        assert answer(gd.DiscountedCOPTD(0.9), log, target).shares.initial is None

    @pytest.mark.parametrize("estimator", [gd.COPTD(1.0), gd.BCH(1.0), gd.BCH(0.8), gd.GEM(0.8)], ids=repr)
    def test_intervals_cover(self, estimator):
        mdp, target, _ = random_problem(1)
        behavior, truth = np.full((5, 2), 0.5), mdp.value(target, estimator.discount)
        covered = []
        for seed in range(200):
            log = mdp.rollout(behavior, 50, 20, np.random.default_rng(seed))
            low, high = gd.evaluate(log, gd.TabularPolicy(target), estimator).interval
            covered.append(low < truth < high)
        assert 0.88 <= np.mean(covered) <= 0.99


class TestConsistency:
    @pytest.mark.parametrize("estimator", [gd.COPTD(1.0), gd.BCH(1.0), gd.BCH(0.8), *DISCOUNTED], ids=repr)
    def test_error_falls_with_the_root_of_the_number_of_episodes(self, estimator):
        mdp, target, _ = random_problem(2)
        behavior, sizes = np.full((5, 2), 0.5), (40, 160, 640)
        truth = mdp.value(target, estimator.discount)
        if isinstance(estimator, gd.DiscountedCOPTD):
            state, logged = mdp.initial, np.zeros(5)
            for _ in range(10):
                logged, state = logged + state / 10, state @ np.einsum("sa,sat->st", behavior, mdp.transition)
            truth = gd.mdp.TabularMDP(mdp.transition, mdp.reward, logged).value(target, 0.9)
        errors = []
        for size in sizes:
            logs = (mdp.rollout(behavior, size, 10, np.random.default_rng([size, seed])) for seed in range(40))
            errors.append(np.sqrt(np.mean([(answer(estimator, log, target).value - truth) ** 2 for log in logs])))
        slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
        assert -0.75 < slope < -0.3


class TestInvariances:
    @pytest.mark.parametrize("estimator", EVERY, ids=repr)
    def test_duplicated_episodes(self, estimator):
        _, target, log = rollout_with_ends(0, 40, 12)
        twice = gd.Transitions(
            **{
                field.name: np.concatenate([getattr(log, field.name)] * 2)
                for field in fields(log)
                if getattr(log, field.name) is not None and field.name != "episodes"
            },
            episodes=np.concatenate([log.episodes, log.episodes + 1]),
        )
        first, second = answer(estimator, log, target), answer(estimator, twice, target)
        assert second.value == pytest.approx(first.value, abs=1e-10)
        weighted = replace(log, weights=np.full(len(log), 2.0))
        assert answer(estimator, weighted, target).value == pytest.approx(first.value, abs=1e-10)

    @pytest.mark.parametrize("estimator", EVERY, ids=repr)
    def test_renamed_states(self, estimator):
        _, target, log = rollout_with_ends(0, 40, 12)
        new = np.array([3, 0, 4, 2, 1])
        renamed = replace(log, states=new[log.states], next_states=new[log.next_states])
        moved = np.empty_like(target)
        moved[new] = target
        first, second = answer(estimator, log, target), answer(estimator, renamed, moved)
        assert second.value == pytest.approx(first.value, abs=1e-10)
        np.testing.assert_allclose(second.shares.rows, first.shares.rows, atol=1e-10)

    @pytest.mark.parametrize("estimator", EVERY, ids=repr)
    def test_reward_shift(self, estimator):
        """Exactly c where the value is self-normalised and nothing ends; else c times the ratio's mean."""
        mdp, target, _ = random_problem(3)
        log = mdp.rollout(np.full((5, 2), 0.5), 40, 12, np.random.default_rng(0))
        first = answer(estimator, log, target)
        second = answer(estimator, replace(log, rewards=log.rewards + 2.5), target)
        normalised = getattr(estimator, "self_normalised", True) or estimator.discount == 1
        shift = 2.5 * (1.0 if normalised else first.mean_ratio)
        assert second.value - first.value == pytest.approx(shift, abs=1e-10)

    @pytest.mark.parametrize("estimator", [*AVERAGE, gd.DiscountedCOPTD(0.9)], ids=repr)
    def test_the_behaviour_itself_has_the_logged_value(self, estimator):
        """On a log in which states and next states are distributed alike, c = 1."""
        mdp, _, data_dist = random_problem(3)
        behavior = data_dist / data_dist.sum(axis=1, keepdims=True)
        log = mdp.rollout(behavior, 1, 500, np.random.default_rng(0))
        log = replace(log, next_states=np.append(log.states[1:], log.states[0]))
        found = answer(estimator, log, behavior)
        assert found.value == pytest.approx(log.rewards.mean(), abs=1e-10)
        np.testing.assert_allclose(found.ratio, 1, atol=1e-9)

    @pytest.mark.parametrize("estimator", EVERY, ids=repr)
    def test_kernel_features_that_span_all_states_are_a_table(self, estimator):
        """A kernel map gives the table's answer where it can express any function of the few states."""
        _, target, log = rollout_with_ends(1, 60, 12)
        vectors = np.random.default_rng(0).normal(size=(5, 2))
        table = answer(estimator, log, target)
        elsewhere = replace(
            log,
            states=vectors[log.states],
            next_states=vectors[log.next_states],
            initial_states=vectors[log.start_states],
        )

        def probabilities(states):
            return target[np.argmin(np.sum((states[:, None] - vectors) ** 2, axis=2), axis=1)]

        policy = gd.DiscretePolicy(probabilities, 2)
        for functions in (gd.RandomFourier(60, 0.4), gd.Nystrom(60, 0.4)):
            found = estimator.answer(elsewhere, policy, functions, 0)
            if isinstance(estimator, gd.BCH):  # whose metric is the kernel's: another least squares with the same limit
                assert found.value == pytest.approx(table.value, abs=0.05)
            else:
                assert found.value == pytest.approx(table.value, abs=1e-6)


class TestStochastic:
    @pytest.mark.parametrize(
        "estimator",
        [gd.COPTD(1.0, "stochastic"), gd.DiscountedCOPTD(0.8, "stochastic"), gd.GEM(0.8, "stochastic")],
        ids=repr,
    )
    def test_leads_to_the_exact_fixed_point_of_a_stationary_log(self, estimator):
        mdp, target, _ = random_problem(1)
        log = mdp.rollout(np.full((5, 2), 0.5), 1, 3000, np.random.default_rng(1))
        log = replace(log, next_states=np.append(log.states[1:], log.states[0]), initial_states=STARTS)
        exact = answer(replace(estimator, solver="exact"), log, target).solution.ratio_params
        found = [answer(estimator, log, target, seed=seed).solution.ratio_params for seed in range(2)]
        start = np.abs(1 - exact).max()
        assert start > 0.1
        for params in found:
            assert np.abs(params - exact).max() < 0.25 * start
        assert not np.array_equal(*found)
        again = answer(estimator, log, target, seed=0)
        assert np.array_equal(again.solution.ratio_params, found[0]) and again.shares is None

    @pytest.mark.parametrize(
        "estimator", [gd.COPTD(1.0, "stochastic", 3000), gd.GEM(0.8, "stochastic", 3000)], ids=repr
    )
    def test_runs_through_ends_and_restarts(self, estimator):
        _, target, log = rollout_with_ends(1)
        exact = answer(replace(estimator, solver="exact"), log, target)
        found = answer(estimator, log, target)
        assert found.status.ok and abs(found.value - exact.value) < 0.5

    def test_says_that_it_diverged(self):
        _, target, log = rollout_with_ends(1)
        estimate = gd.evaluate(log, gd.TabularPolicy(target), gd.GEM(0.9, "stochastic", 2000, learning_rate=50.0))
        assert estimate.status is gd.Status.DIVERGED and np.isfinite(estimate.value)

    def test_published_update_is_wrong_where_the_log_is_not_stationary(self):
        """Why the exact solver has its error at the logged states: transitions from any other distribution."""
        mdp, target, data_dist = random_problem(0)
        data = every_transition(mdp, data_dist)
        truth = mdp.value(target, 1.0)
        published = answer(gd.COPTD(1.0, "stochastic"), data, target)
        assert abs(answer(gd.COPTD(1.0), data, target).value - truth) < 1e-12
        assert abs(published.value - truth) > 0.02
        assert any("next states" in note for note in published.notes)


class TestDegenerate:
    @pytest.mark.parametrize("estimator", EVERY, ids=repr)
    def test_one_state(self, estimator):
        log = gd.Transitions([0] * 4, [0, 0, 1, 0], [1.0, 2.0, 3.0, 4.0], [0] * 4, episodes=[0, 0, 1, 1],
                             behavior_log_probs=np.log([0.5, 0.5, 0.5, 0.5]))  # fmt: skip
        found = answer(estimator, log, [[0.3, 0.7]])
        rho = np.array([0.6, 0.6, 1.4, 0.6])
        if estimator in PLAIN:
            assert found.value == pytest.approx(0.1 * np.mean(rho * log.rewards) / (1 - 0.9 * rho.mean()))
        else:
            weights = rho if estimator != gd.BCH(0.9) else rho * [1, 0.9, 1, 0.9]
            assert found.value == pytest.approx(np.sum(weights * log.rewards) / weights.sum())

    @pytest.mark.parametrize("estimator", EVERY, ids=repr)
    def test_one_episode_has_a_value_and_no_interval(self, estimator):
        mdp, target, _ = random_problem(0)
        log = mdp.rollout(np.full((5, 2), 0.5), 1, 200, np.random.default_rng(0))
        assert np.isfinite(answer(estimator, log, target).value)
        with pytest.raises(gd.InputError, match="two independent units"):
            gd.evaluate(log, gd.TabularPolicy(target), estimator)

    @pytest.mark.parametrize("estimator", EVERY, ids=repr)
    def test_actions_that_the_policy_never_takes(self, estimator):
        mdp, target, _ = random_problem(0)
        target = np.array(target)
        target[::2] = [1.0, 0.0]
        mdp = with_starts(mdp)
        data = every_transition(mdp, np.full((5, 2), 0.1)) if estimator != gd.BCH(0.9) else every_trajectory(
            mdp, np.full((5, 2), 0.5), 2
        )  # fmt: skip
        chain = mdp
        if isinstance(estimator, gd.DiscountedCOPTD) and estimator.discount < 1:
            chain = gd.mdp.TabularMDP(mdp.transition, mdp.reward, np.full(5, 0.2))
        assert answer(estimator, data, target).value == pytest.approx(
            chain.value(target, estimator.discount), abs=1e-10
        )

    @pytest.mark.parametrize("estimator", EVERY, ids=repr)
    def test_an_action_that_the_log_never_shows(self, estimator):
        mdp, target, _ = random_problem(0)
        log = mdp.rollout(np.tile([1.0, 0.0], (5, 1)), 20, 10, np.random.default_rng(0))
        with pytest.raises(gd.InputError, match="action 1, which the log never shows"):
            answer(estimator, log, target)
        log = mdp.rollout(np.array([[1.0, 0.0], *[[0.5, 0.5]] * 4]), 100, 10, np.random.default_rng(0))
        assert any("never shows in that state" in note for note in answer(estimator, log, target).notes)

    @pytest.mark.parametrize("estimator", EVERY, ids=repr)
    def test_a_policy_that_takes_no_logged_action(self, estimator):
        mdp, _, _ = random_problem(0)
        log = mdp.rollout(np.tile([1.0, 0.0], (5, 1)), 20, 10, np.random.default_rng(0))
        with pytest.raises(gd.InputError, match="never shows|none of the logged"):
            answer(estimator, log, np.tile([0.0, 1.0], (5, 1)))

    @pytest.mark.parametrize(
        "estimator", [*EVERY, gd.COPTD(1.0, "stochastic", 99), gd.GEM(0.9, "stochastic", 99)], ids=repr
    )
    def test_huge_importance_ratios_give_a_status_or_an_error(self, estimator):
        mdp, target, _ = random_problem(0)
        log = mdp.rollout(np.full((5, 2), 0.5), 40, 10, np.random.default_rng(0))
        for logarithm in (-20, -50, -130):
            odd = np.where(np.arange(400) % 50 == 7, logarithm, log.behavior_log_probs)
            estimate = gd.evaluate(replace(log, behavior_log_probs=odd), gd.TabularPolicy(target), estimator)
            assert np.isfinite(estimate.value) and np.isfinite(estimate.interval or 0.0).all()
            assert estimate.verdict is gd.Verdict.DO_NOT_TRUST
        with pytest.raises(gd.InputError, match="importance ratio of row 7"):
            answer(estimator, replace(log, behavior_log_probs=np.where(np.arange(400) == 7, -700, 0.0)), target)

    @pytest.mark.parametrize("estimator", [gd.COPTD(1.0), gd.BCH(1.0)], ids=repr)
    def test_two_closed_classes_have_no_unique_ratio(self, estimator):
        transition = np.kron(np.eye(2), np.full((2, 2), 0.5))[:, None].repeat(2, axis=1)
        states, policy = np.repeat(np.arange(4), 4), np.full((4, 2), 0.5)
        mdp = gd.mdp.TabularMDP(transition, np.ones((4, 2)), np.full(4, 0.25))
        data = every_transition(mdp, np.full((4, 2), 0.125), states)
        data = replace(data, weights=None, **{name: getattr(data, name)[data.weights > 0] for name in (
            "states", "actions", "rewards", "next_states", "behavior_log_probs")})  # fmt: skip
        found = answer(estimator, data, policy)
        assert found.status in (gd.Status.SINGULAR, gd.Status.ILL_CONDITIONED)
        assert found.value == pytest.approx(1.0)

    @pytest.mark.parametrize("estimator", EVERY, ids=repr)
    def test_a_state_that_the_log_only_leads_to(self, estimator):
        log = gd.Transitions([0, 1], [0, 1], [1.0, 2.0], [1, 2], episodes=[0, 0], behavior_log_probs=np.log([0.5, 0.5]))
        with pytest.raises(gd.InputError, match="reaches state 2"):
            answer(estimator, log, np.full((3, 2), 0.5))


class TestRefusals:
    @pytest.mark.parametrize("estimator", EVERY, ids=repr)
    def test_needs_the_behaviours_probabilities(self, estimator):
        mdp, target, _ = random_problem(0)
        log = replace(mdp.rollout(np.full((5, 2), 0.5), 50, 20, np.random.default_rng(0)), behavior_log_probs=None)
        with pytest.raises(gd.InputError, match="behavior_log_probs"):
            answer(estimator, log, target)
        cloned = answer(replace(estimator, behavior=gd.BehaviorCloning()), log, target)
        assert np.isfinite(cloned.value)
        assert any("estimated behaviour" in note for note in cloned.notes)

    @pytest.mark.parametrize("estimator", EVERY, ids=repr)
    def test_continuous_actions(self, estimator):
        rng = np.random.default_rng(0)
        log = gd.Transitions(rng.normal(size=(9, 2)), rng.normal(size=(9, 1)), np.zeros(9), rng.normal(size=(9, 2)),
                             episodes=np.zeros(9, dtype=int), behavior_log_probs=np.zeros(9))  # fmt: skip
        policy = gd.SamplingPolicy(lambda states, rng: np.zeros((len(states), 1)))
        with pytest.raises(gd.InputError, match="discrete actions"):
            estimator.answer(log, policy, None, 0)

    def test_discounts_that_do_not_apply(self):
        _, target, log = rollout_with_ends(0)
        with pytest.raises(gd.InputError, match="COPTD is for the average reward"):
            answer(gd.COPTD(0.9), log, target)
        with pytest.raises(gd.InputError, match="GEM needs a discount below 1"):
            answer(gd.GEM(1.0), log, target)

    def test_missing_episodes_and_initial_states(self):
        mdp, target, data_dist = random_problem(0)
        behavior = data_dist / data_dist.sum(axis=1, keepdims=True)
        log = mdp.sample(2000, data_dist, np.random.default_rng(0))
        log = replace(log, behavior_log_probs=np.log(behavior[log.states, log.actions]))
        with pytest.raises(gd.InputError, match="BCH needs whole trajectories"):
            answer(gd.BCH(0.9), log, target)
        bare = replace(log, initial_states=None)
        with pytest.raises(gd.InputError, match="needs initial states"):
            answer(gd.GEM(0.9), bare, target)
        for estimator in (gd.COPTD(1.0), gd.BCH(1.0), gd.DiscountedCOPTD(0.9)):
            assert np.isfinite(answer(estimator, bare, target).value)
        with pytest.raises(gd.InputError, match="restart"):
            answer(gd.COPTD(1.0), replace(bare, terminated=np.arange(2000) == 3), target)

    @pytest.mark.parametrize("estimator", EVERY, ids=repr)
    def test_features_of_the_action(self, estimator):
        _, target, log = rollout_with_ends(0)
        both = gd.LinearFeatures(lambda states, actions: np.column_stack([states, states * actions]))
        with pytest.raises(gd.InputError, match="depend on the action"):
            answer(estimator, log, target, both)
        with pytest.raises(gd.InputError, match="linear functions"):
            estimator.answer(log, gd.TabularPolicy(target), gd.MLP(), 0)

    def test_bad_options(self):
        for estimator in (gd.COPTD(1.0), gd.DiscountedCOPTD(0.9), gd.BCH(0.9), gd.GEM(0.9)):
            for name in ("discount", "rank_tolerance", "learning_rate"):
                for bad in (-1.0, float("nan")):
                    if hasattr(estimator, name):
                        with pytest.raises(gd.InputError, match=name):
                            replace(estimator, **{name: bad})
        with pytest.raises(gd.InputError, match="solver"):
            gd.GEM(0.9, solver="adam")
        with pytest.raises(gd.InputError, match="tests"):
            gd.BCH(0.9, tests=gd.Tabular(2, 2))

    def test_compare_says_why_one_does_not_apply(self):
        _, target, log = rollout_with_ends(0)
        table = gd.compare(
            log, gd.TabularPolicy(target), [gd.GEM(0.9), gd.COPTD(0.9), gd.BCH(0.9), gd.GradientDICE(0.9)]
        )
        notes = dict(zip(table["estimator"].str.extract(r"(\w+)\(")[0], table["note"], strict=True))
        assert notes["COPTD"].startswith("not applicable: COPTD is for the average reward")
        assert notes["GEM"] == notes["BCH"] == ""
        values = dict(zip(table["estimator"].str.extract(r"^(\w+)\(")[0], table["value"], strict=True))
        assert values["GEM"] == pytest.approx(values["GradientDICE"], abs=0.1)
