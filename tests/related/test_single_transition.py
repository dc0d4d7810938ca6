"""What MWL, MQL, FQE, the black-box estimator and the regularised Lagrangian owe: the truth, and one another's answers."""

from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest

import gradientdice as gd
from reference import kernels
from reference.population import boyan, problem

Lagrangian = gd.RegularizedLagrangian
EVERY = [
    gd.MWL,
    gd.MQL,
    gd.FQE,
    gd.BlackBox,
    Lagrangian,
    Lagrangian.best_dice,
    Lagrangian.gen_dice,
    Lagrangian.gradient_dice,
    Lagrangian.dual_dice,
    Lagrangian.mwl,
    Lagrangian.mql,
]
DISCOUNTED_ONLY = (Lagrangian.dual_dice, Lagrangian.mwl, Lagrangian.mql)
NAMES = [f"{getattr(make, '__self__', make).__name__}.{make.__name__}" for make in EVERY]
# One with influence values that are its own for each of the ways to solve.
MAIN = [gd.MWL, gd.MQL, gd.FQE, gd.BlackBox, Lagrangian.best_dice, Lagrangian.gradient_dice]


def applies(make, discount):
    return not (make is gd.BlackBox and discount < 1 or make in DISCOUNTED_ONLY and discount == 1)


def cases(makes, discounts):
    return [
        pytest.param(make, discount, id=f"{NAMES[EVERY.index(make)]}-{discount:g}")
        for make in makes
        for discount in discounts
        if applies(make, discount)
    ]


def tolerance(make):
    """The black-box estimator's ridge biases it by about its size."""
    return 1e-8 if make is gd.BlackBox else 1e-9


class TestTruth:
    @pytest.mark.parametrize(("make", "discount"), cases(EVERY, [0.0, 0.5, 0.9, 1.0]))
    @pytest.mark.parametrize("ending", [False, True])
    @pytest.mark.parametrize("seed", range(3))
    def test_is_exact_on_the_population(self, make, discount, seed, ending):
        case = problem(seed, ending)
        answer = make(discount).answer(case.log(), case.policy, gd.Tabular(4, 2), 0)
        assert answer.status.ok
        assert answer.value == pytest.approx(case.truth(discount), abs=tolerance(make))
        assert answer.mean_ratio == pytest.approx(1, abs=1e-8)
        weights = case.log().weights
        assert np.average(answer.ratio * case.log().rewards, weights=weights) == pytest.approx(answer.value, abs=1e-9)

    @pytest.mark.parametrize(("make", "discount"), cases(EVERY, [0.9]))
    def test_boyan_discounted(self, make, discount):
        case = boyan("episodic")
        value = make(discount).answer(case.log(), case.policy, gd.Tabular(13, 2), 0).value
        mdp = gd.mdp.boyan_chain("episodic")
        assert value == pytest.approx(mdp.value(case.target, discount), abs=1e-9)

    @pytest.mark.parametrize(("make", "discount"), cases(EVERY, [1.0]))
    def test_boyan_average(self, make, discount):
        case = boyan("continuing")
        value = make(discount).answer(case.log(), case.policy, gd.Tabular(13, 2), 0).value
        assert value == pytest.approx(
            gd.mdp.boyan_chain("continuing").value(case.target, 1.0), abs=10 * tolerance(make)
        )

    @pytest.mark.parametrize(("make", "discount"), cases(MAIN, [0.5, 1.0]))
    def test_error_falls_with_the_root_of_n(self, make, discount):
        case = problem(3, ending=True)
        truth, rng = case.truth(discount), np.random.default_rng(5)
        sizes, errors = [200, 800, 3200], []
        for n in sizes:
            values = [
                make(discount).answer(case.sample(n, rng), case.policy, gd.Tabular(4, 2), 0).value for _ in range(40)
            ]
            errors.append(np.sqrt(np.mean((np.array(values) - truth) ** 2)))
        slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
        assert -0.75 < slope < -0.3


class TestOneSolve:
    """MATHS fact 1: with a constant among the features, no ridge and γ < 1 all of these are one estimate."""

    FEATURES = np.random.default_rng(9).normal(size=(8, 3))

    @pytest.mark.parametrize("discount", [0.0, 0.5, 0.9])
    @pytest.mark.parametrize("ending", [False, True])
    @pytest.mark.parametrize("table", [False, True])
    @pytest.mark.parametrize("seed", range(3))
    def test_all_agree(self, seed, table, ending, discount):
        case, rng = problem(seed, ending), np.random.default_rng(seed)
        data = case.sample(600, rng, weights=rng.uniform(0.2, 2, 600))
        functions = gd.Tabular(4, 2) if table else gd.LinearFeatures(lambda s, a: self.FEATURES[2 * s + a])
        expected = gd.evaluate(data, case.policy, gd.LSTDQ(discount), functions=functions)
        again = gd.evaluate(data, case.policy, gd.GradientDICE(discount), functions=functions)
        assert again.value == pytest.approx(expected.value, abs=1e-9)
        for make in EVERY:
            estimator = make(discount)
            if make is gd.BlackBox or (getattr(estimator, "positive", False) and not table):
                continue
            found = gd.evaluate(data, case.policy, estimator, functions=functions)
            if make is gd.FQE and found.status is gd.Status.NOT_CONVERGED:
                assert found.solution.stats["spectral_radius"] >= 1
                continue
            assert found.value == pytest.approx(expected.value, abs=1e-9), estimator
            assert found.standard_error == pytest.approx(expected.standard_error, rel=1e-6), estimator
            np.testing.assert_allclose(found.ratio, expected.ratio, atol=1e-7)

    @pytest.mark.parametrize("ending", [False, True])
    @pytest.mark.parametrize("seed", range(3))
    def test_all_agree_on_the_average_reward_of_a_table(self, seed, ending):
        case, rng = problem(seed, ending), np.random.default_rng(seed)
        data = case.sample(600, rng, weights=rng.uniform(0.2, 2, 600))
        expected = gd.evaluate(data, case.policy, gd.LSTDQ(1.0))
        for make in EVERY:
            if make in DISCOUNTED_ONLY:
                continue
            found = gd.evaluate(data, case.policy, make(1.0))
            assert found.value == pytest.approx(expected.value, abs=10 * tolerance(make))
            assert found.standard_error == pytest.approx(expected.standard_error, rel=1e-5)

    @pytest.mark.parametrize("discount", [0.9, 1.0])
    def test_without_a_constant_gradient_dice_is_the_hard_constraint(self, discount):
        case, rng = problem(0), np.random.default_rng(0)
        data = case.sample(600, rng)
        functions = gd.LinearFeatures(lambda s, a: self.FEATURES[2 * s + a], intercept=False)
        hard = gd.evaluate(data, case.policy, gd.GradientDICE(discount, norm_penalty=np.inf), functions=functions)
        same = gd.evaluate(data, case.policy, Lagrangian.gradient_dice(discount), functions=functions)
        assert same.value == pytest.approx(hard.value, abs=1e-10)
        assert same.standard_error == pytest.approx(hard.standard_error, rel=1e-8)

    def test_the_dual_preset_is_dual_dice(self):
        case, rng = problem(0), np.random.default_rng(0)
        data = case.sample(600, rng)
        functions = gd.LinearFeatures(lambda s, a: self.FEATURES[2 * s + a], intercept=False)
        first = gd.evaluate(data, case.policy, gd.DualDICE(0.9, power=2.0), functions=functions)
        second = gd.evaluate(data, case.policy, Lagrangian.dual_dice(0.9), functions=functions)
        assert second.value == pytest.approx(first.value, abs=1e-10)


@pytest.mark.parametrize(("make", "discount"), cases(EVERY, [0.9, 1.0]))
class TestInvariances:
    def value(self, make, discount, data, policy):
        return make(discount).answer(data, policy, gd.Tabular(4, 2), 0).value

    def test_duplicated_and_permuted_rows(self, make, discount):
        case, rng = problem(1, ending=True), np.random.default_rng(1)
        data = case.sample(300, rng)
        order = np.tile(rng.permutation(300), 2)
        columns = {name: getattr(data, name)[order] for name in ("states", "actions", "rewards", "next_states")}
        again = gd.Transitions(**columns, terminated=data.terminated[order], initial_states=data.initial_states)
        weighted = replace(data, weights=np.full(300, 2.0))
        first = self.value(make, discount, data, case.policy)
        assert self.value(make, discount, again, case.policy) == pytest.approx(first, abs=1e-8)
        assert self.value(make, discount, weighted, case.policy) == pytest.approx(first, abs=1e-8)

    def test_renamed_states(self, make, discount):
        case, rng = problem(2, ending=True), np.random.default_rng(2)
        data, new = case.sample(300, rng), np.array([2, 0, 3, 1])
        again = replace(
            data, states=new[data.states], next_states=new[data.next_states], initial_states=new[data.initial_states]
        )
        renamed = np.empty_like(case.target)
        renamed[new] = case.target
        first = self.value(make, discount, data, case.policy)
        assert self.value(make, discount, again, gd.TabularPolicy(renamed)) == pytest.approx(first, abs=1e-8)

    def test_a_reward_shift_shifts_the_value(self, make, discount):
        """Exactly, without ends: the ratio's mean is 1. (After an end there is no reward to shift.)"""
        case, rng = problem(2), np.random.default_rng(2)
        data = case.sample(300, rng)
        first = self.value(make, discount, data, case.policy)
        shifted = self.value(make, discount, replace(data, rewards=data.rewards + 3.0), case.policy)
        assert shifted == pytest.approx(first + 3.0, abs=1e-8)

    def test_is_the_logged_mean_where_the_target_made_the_data(self, make, discount):
        case = problem(3)
        case.data_dist = case.chain(1.0).occupancy(case.target, discount)
        answer = make(discount).answer(case.log(), case.policy, gd.Tabular(4, 2), 0)
        assert answer.value == pytest.approx(np.sum(case.data_dist * case.reward), abs=1e-8)
        np.testing.assert_allclose(answer.ratio, 1, atol=1e-6)


@pytest.mark.parametrize(("make", "discount"), cases(MAIN, [0.9, 1.0]))
class TestInference:
    @pytest.mark.parametrize("ending", [False, True])
    def test_shares_are_derivatives(self, make, discount, ending):
        case, rng = problem(4, ending), np.random.default_rng(4)
        data = case.sample(200, rng, weights=rng.uniform(0.5, 1.5, 200))
        data = replace(data, initial_states=data.initial_states[:20])
        estimator, functions = make(discount), gd.Tabular(4, 2)
        shares = estimator.answer(data, case.policy, functions, 0).shares
        scale = np.abs(shares.rows).max()
        for row in range(4):
            step = 1e-4 * np.eye(200)[row]
            up, down = (
                estimator.answer(replace(data, weights=data.weights + s * step), case.policy, functions, 0).value
                for s in (1, -1)
            )
            assert (up - down) / 2e-4 * data.weights[row] == pytest.approx(shares.rows[row], abs=1e-5 * scale)
        if discount == 1 and not ending:
            assert shares.initial is None
            return
        many = np.tile(data.initial_states, 200)
        base = estimator.answer(replace(data, initial_states=many), case.policy, functions, 0).value
        for start in range(3):
            one_more = replace(data, initial_states=np.append(many, data.initial_states[start]))
            moved = estimator.answer(one_more, case.policy, functions, 0).value - base
            size = np.abs(shares.initial).max()
            assert 200 * moved == pytest.approx(shares.initial[start], abs=1e-2 * size)


@pytest.mark.parametrize(
    ("make", "discount"),
    [
        *cases([gd.MWL, gd.FQE, Lagrangian.best_dice], [0.9]),
        *cases([gd.MQL, gd.BlackBox], [1.0]),
    ],
)
def test_intervals_cover(make, discount):
    case, rng = problem(5, ending=True), np.random.default_rng(5)
    truth, hits = case.truth(discount), 0
    for _ in range(200):
        low, high = gd.evaluate(case.sample(400, rng), case.policy, make(discount)).interval
        hits += low < truth < high
    assert 0.88 <= hits / 200 <= 0.99


def episodes_of(case, count, rng):
    mdp = gd.mdp.TabularMDP(case.transition, case.reward, np.bincount(case.starts, minlength=4) / len(case.starts))
    return mdp.rollout(np.full((4, 2), 0.5), count, 20, rng)


class TestDegenerate:
    @pytest.mark.parametrize(("make", "discount"), cases(EVERY, [0.9, 1.0]))
    def test_one_state(self, make, discount):
        mdp = gd.mdp.single_state()
        data = mdp.sample(100, np.full((1, 2), 0.5), np.random.default_rng(0))
        answer = make(discount).answer(data, gd.TabularPolicy([[0.3, 0.7]]), gd.Tabular(1, 2), 0)
        assert answer.value == pytest.approx(0.3, abs=1e-8)

    @pytest.mark.parametrize(("make", "discount"), cases(EVERY, [0.9, 1.0]))
    def test_an_action_of_probability_zero_counts_for_nothing(self, make, discount):
        case, rng = problem(0), np.random.default_rng(0)
        case.target = np.tile([1.0, 0.0], (4, 1))
        data = case.sample(500, rng)
        answer = make(discount).answer(data, case.policy, gd.Tabular(4, 2), 0)
        np.testing.assert_allclose(answer.ratio[data.actions == 1], 0, atol=1e-8)
        only = data.actions == 0
        kept = gd.Transitions(
            data.states[only], data.actions[only], data.rewards[only], data.next_states[only], data.initial_states
        )
        # The behaviour may never take it either.
        assert make(discount).answer(kept, case.policy, gd.Tabular(4, 2), 0).value == pytest.approx(
            answer.value, abs=1e-8
        )

    @pytest.mark.parametrize(("make", "discount"), cases(EVERY, [0.9, 1.0]))
    def test_an_action_never_logged_is_refused(self, make, discount):
        case, rng = problem(0), np.random.default_rng(0)
        data = case.sample(500, rng)
        only = (data.actions == 0) | (data.states != 2)
        kept = gd.Transitions(
            data.states[only], data.actions[only], data.rewards[only], data.next_states[only], data.initial_states
        )
        with pytest.raises(gd.InputError, match="action 1 in state 2, which the log never shows"):
            make(discount).answer(kept, case.policy, gd.Tabular(4, 2), 0)

    @pytest.mark.parametrize(("make", "discount"), cases(EVERY, [0.9, 1.0]))
    def test_episodes_are_the_units_and_one_is_too_few(self, make, discount):
        case = problem(1)
        data = episodes_of(case, 12, np.random.default_rng(3))
        shuffled = np.argsort(np.tile(np.arange(20), 12), kind="stable")  # episodes interleaved
        columns = ("states", "actions", "rewards", "next_states", "truncated", "episodes", "behavior_log_probs")
        again = gd.Transitions(**{name: getattr(data, name)[shuffled] for name in columns})
        first, second = (gd.evaluate(log, case.policy, make(discount)) for log in (data, again))
        assert second.value == pytest.approx(first.value, abs=1e-8)
        assert second.standard_error == pytest.approx(first.standard_error, rel=1e-6)
        assert first.num_clusters == 12
        one = episodes_of(case, 1, np.random.default_rng(3))
        with pytest.raises(gd.InputError, match="two independent units|never shows"):
            gd.evaluate(one, case.policy, make(discount))


class TestRefusals:
    @pytest.mark.parametrize("make", [gd.MWL, gd.MQL, gd.BlackBox, Lagrangian], ids=lambda make: make.__name__)
    def test_networks(self, make):
        case = problem(0)
        with pytest.raises(gd.InputError, match="linear functions"):
            gd.evaluate(case.log(), case.policy, make(1.0), functions=gd.MLP())

    @pytest.mark.parametrize("make", [gd.MWL, gd.MQL, gd.FQE, Lagrangian], ids=lambda make: make.__name__)
    def test_no_initial_states(self, make):
        case = problem(0)
        data = replace(case.log(), initial_states=None)
        with pytest.raises(gd.InputError, match="initial"):
            gd.evaluate(data, case.policy, make(0.9))
        assert gd.evaluate(data, case.policy, make(1.0)).value == pytest.approx(case.truth(1.0), abs=1e-8)
        ending = replace(problem(0, ending=True).log(), initial_states=None)
        with pytest.raises(gd.InputError, match="restart"):
            gd.evaluate(ending, case.policy, make(1.0))

    def test_black_box_below_discount_one(self):
        case = problem(0)
        with pytest.raises(gd.InputError, match="average reward"):
            gd.evaluate(case.log(), case.policy, gd.BlackBox(0.9))

    @pytest.mark.parametrize("make", DISCOUNTED_ONLY, ids=lambda make: make.__name__)
    def test_no_norm_at_discount_one(self, make):
        case = problem(0)
        with pytest.raises(gd.InputError, match="norm=True"):
            gd.evaluate(case.log(), case.policy, make(1.0))

    def test_continuous_actions_go_through_draws(self):
        rng = np.random.default_rng(0)
        states = rng.normal(size=(500, 1))
        actions = rng.normal(size=(500, 1))
        data = gd.Transitions(states, actions, states[:, 0], 0.5 * states + actions, rng.normal(size=(50, 1)))
        policy = gd.SamplingPolicy(lambda s, rng: 0.1 * rng.normal(size=(len(s), 1)))
        for make, discount in ((gd.MWL, 0.9), (gd.MQL, 0.9), (gd.FQE, 0.5), (Lagrangian, 0.9), (gd.BlackBox, 1.0)):
            value = gd.evaluate(data, policy, make(discount), functions=gd.RandomFourier(10, bandwidth=3.0)).value
            assert np.isfinite(value) and abs(value) < 1
        with pytest.raises(gd.InputError, match="tables"):
            gd.evaluate(data, policy, Lagrangian.best_dice(0.9))

    def test_compare_says_why_not(self):
        case = problem(0)
        data = case.sample(800, np.random.default_rng(0))
        every = [gd.MWL(0.9), gd.MQL(0.9), gd.FQE(0.9), gd.BlackBox(0.9), Lagrangian(0.9)]
        table = gd.compare(data, case.policy, every).set_index("estimator")
        for estimator in every:
            note = table.loc[repr(estimator), "note"]
            if isinstance(estimator, gd.BlackBox):
                assert note.startswith("not applicable: BlackBox is for the average reward")
            else:
                assert (
                    note == ""
                    and table.loc[repr(estimator), "low"] < case.truth(0.9) < table.loc[repr(estimator), "high"]
                )

    @pytest.mark.parametrize("make", [gd.MWL, gd.MQL, gd.FQE, gd.BlackBox, Lagrangian], ids=lambda make: make.__name__)
    def test_fields_are_checked(self, make):
        estimator = make(0.9)
        assert is_dataclass(estimator) and hash(estimator) == hash(make(0.9))
        for field in fields(estimator):
            if isinstance(getattr(estimator, field.name), (int, float)) and not isinstance(
                getattr(estimator, field.name), bool
            ):
                for bad in (-1.0, float("nan"), "1"):
                    with pytest.raises(gd.InputError, match=field.name):
                        replace(estimator, **{field.name: bad})


@pytest.mark.parametrize("ending", [False, True])
@pytest.mark.parametrize("discount", [0.5, 0.9, 1.0])
def test_agrees_with_plain_versions(discount, ending):
    """The same numbers from n × n kernel matrices and from loops, weights and ends included."""
    case, rng = problem(6, ending), np.random.default_rng(6)
    data = case.sample(150, rng, weights=rng.uniform(0.5, 1.5, 150))
    mix = rng.normal(size=(8, 3))
    small = gd.LinearFeatures(lambda s, a: mix[2 * s + a])
    table = gd.Tabular(4, 2)
    x, x_next, x0, rewards, weights = kernels.tables(data, case.target, discount)
    full = np.column_stack([np.ones(8), mix])
    if x.shape[1] == 9:  # the absorbing state has an indicator of its own
        full = np.block([[full, np.zeros((8, 1))], [np.zeros((1, 4)), np.ones((1, 1))]])
    y, y_next, y0 = x @ full, x_next @ full, x0 @ full

    value, ratio = kernels.mwl(y, x, x_next, x0, rewards, weights, discount)
    found = gd.MWL(discount, discriminator=table).answer(data, case.policy, small, 0)
    assert found.value == pytest.approx(value, abs=1e-10)
    np.testing.assert_allclose(found.ratio, (weights[:150].sum()) * ratio[:150], atol=1e-8)
    size = float(weights @ ratio)
    normalised = gd.MWL(discount, discriminator=table, self_normalize=True).answer(data, case.policy, small, 0)
    assert normalised.value == pytest.approx(value / size, abs=1e-10)

    keep = slice(0, -1) if x.shape[1] == 9 else slice(None)  # Q is 0 once all is over
    value = kernels.mql(y[:, keep], y_next[:, keep], y0[keep], x, rewards, weights, discount)
    found = gd.MQL(discount, discriminator=table).answer(data, case.policy, small, 0)
    assert found.value == pytest.approx(value, abs=1e-10)
    assert np.average(found.ratio * data.rewards, weights=data.weights) == pytest.approx(value, abs=1e-10)

    value = kernels.fitted_q(data, case.target, discount, 2000)
    assert gd.FQE(discount).answer(data, case.policy, table, 0).value == pytest.approx(value, abs=1e-10)

    on_the_log = np.ones(len(x))
    if x.shape[1] == 9:
        on_the_log[-1] = 0
    for alphas in ((0.0, 1.0, 1.0), (0.5, 0.0, 1.0), (0.5, 1.0, 0.0), (0.5, 1.0, 1.0)):
        expected = kernels.lagrangian(y, y_next, y0, rewards, weights, discount, *alphas, 1, on_the_log)
        for read_out, value in zip(gd.ReadOut, expected, strict=True):
            if read_out is gd.ReadOut.CRITIC and alphas[2] == 0:
                continue
            answer = Lagrangian(discount, *alphas, read_out=read_out).answer(data, case.policy, small, 0)
            assert answer.value == pytest.approx(value, abs=1e-8)
