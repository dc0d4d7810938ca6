"""Which rows are independent units: episodes, copies, rows that count 0 times; and what is not taken for a copy."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.statistics.checks import Verdict
from gradientdice.statistics.log_tests import copied_rows
from problems import known, linear_gaussian, loop, random_problem, rolled, take


def noisy_table(rows, rng):
    mdp, target, data_dist = random_problem(0)
    data = mdp.sample(rows, data_dist, rng)
    return replace(data, rewards=data.rewards + rng.normal(size=rows)), target


class TestCopies:
    @pytest.mark.parametrize("share", [0.05, 0.5])
    @pytest.mark.parametrize("kind", ["table", "continuous"])
    def test_copied_rows_are_one_unit(self, kind, share, rng):
        data = noisy_table(1000, rng)[0] if kind == "table" else linear_gaussian(1000, rng)[0]
        again = rng.choice(1000, size=int(1000 * share), replace=False)
        units = take(data, np.append(np.arange(1000), again)).units
        assert units.count == 1000
        np.testing.assert_array_equal(units.rows, np.append(np.arange(1000), again))
        np.testing.assert_array_equal(np.flatnonzero(units.copied), 1000 + np.arange(len(again)))

    def test_without_copies_each_row_is_a_unit(self, rng):
        for data in (noisy_table(1000, rng)[0], linear_gaussian(1000, rng)[0]):
            np.testing.assert_array_equal(data.units.rows, np.arange(1000))
            assert not data.units.copied.any() and not copied_rows(data)

    def test_few_possible_values_are_no_copies(self, rng):
        """Whole rewards, rewards that follow from the pair, two rewards with fractions, and one in every row."""
        mdp, _, data_dist = random_problem(0)
        data = mdp.sample(1000, data_dist, rng)
        deterministic = data.states * 2 + data.actions
        for rewards in (
            rng.integers(0, 2, 1000),
            data.rewards,
            0.5 + rng.integers(0, 2, 1000),
            np.full(1000, -0.2),
        ):
            assert replace(data, rewards=rewards).units.count == 1000
            fixed = replace(data, rewards=rewards, next_states=deterministic % 5)
            assert fixed.units.count == 1000

    def test_states_that_come_again_by_themselves_are_no_copies(self, rng):
        """Users with fixed features who are seen several times; a start that all episodes have."""
        users = rng.normal(size=(100, 3))[rng.integers(0, 100, 600)]
        clicks = rng.random(600) < 0.1
        data = gd.Transitions(users, rng.integers(0, 3, 600), clicks, users)
        assert data.units.count == 600
        states = rng.normal(size=(600, 2))
        states[::10] = 0.25
        data = gd.Transitions(states, rng.integers(0, 2, 600), np.zeros(600), rng.normal(size=(600, 2)))
        assert data.units.count == 600
        again = take(data, np.append(np.arange(600), np.arange(300, 360)))
        # Only the copies of the shared start, of which there are 6, cannot be told from others.
        assert again.units.copied.sum() == 54

    def test_wide_states_are_read_to_their_last_column(self, rng):
        """Rows that one column alone tells apart, whichever it is, and copies among them that lie far apart."""
        width, rows = 300, 900
        for column in (0, 1, 150, 298, 299):
            states = np.full((rows, width), 0.5)
            states[:, column] = rng.normal(size=rows)
            data = gd.Transitions(states, np.zeros(rows, dtype=int), np.zeros(rows), states)
            assert data.units.count == rows and not data.units.copied.any()
            units = take(data, np.append(np.arange(rows), [3, 700])).units
            np.testing.assert_array_equal(np.flatnonzero(units.copied), [rows, rows + 1])
            np.testing.assert_array_equal(units.rows[rows:], [3, 700])

    def test_rows_that_count_0_times_have_no_copies(self, rng):
        data = take(linear_gaussian(500, rng)[0], np.tile(np.arange(500), 2))
        weights = np.repeat([0.0, 1.0], 500)
        units = replace(data, weights=weights).units
        assert units.count == 500 and not units.copied.any()

    def test_the_share_is_judged(self, rng):
        data = noisy_table(1000, rng)[0]
        for extra, verdict in ((10, Verdict.TRUST), (100, Verdict.CAUTION), (3000, Verdict.DO_NOT_TRUST)):
            copies = np.resize(np.arange(1000), extra)
            (check,) = copied_rows(take(data, np.append(np.arange(1000), copies)))
            assert check.verdict is verdict and check.value == pytest.approx(extra / (1000 + extra))
        assert "copies" in check.reason and "weights=" in check.reason

    def test_an_answer_says_so_and_its_error_is_that_of_the_distinct_rows(self, rng):
        data, target = noisy_table(2000, rng)
        policy = gd.TabularPolicy(target)
        one = gd.evaluate(data, policy, discount=0.9)
        two = gd.evaluate(take(data, np.tile(np.arange(2000), 2)), policy, discount=0.9)
        assert one.verdict is gd.Verdict.TRUST and two.verdict is gd.Verdict.CAUTION
        assert "rows that are copies" in two.reasons[0]
        assert two.value == pytest.approx(one.value) and two.standard_error == pytest.approx(one.standard_error)
        assert two.num_clusters == 2000


class TestEpisodes:
    def test_episodes_are_units_and_those_that_count_0_times_are_none(self):
        data = rolled(loop(), 6, 4, seed=0)
        np.testing.assert_array_equal(data.units.rows, np.repeat(np.arange(6), 4))
        weights = np.repeat([1.0, 0.0, 2.0, 1.0, 0.0, 3.0], 4)
        units = replace(data, weights=weights).units
        assert units.count == 4
        np.testing.assert_array_equal(units.rows[::4], [0, -1, 1, 2, -1, 3])
        np.testing.assert_array_equal(units.sums(weights), [4.0, 8.0, 4.0, 12.0])

    def test_copied_episodes_are_one_unit_and_episodes_that_share_a_row_are_not(self, rng):
        data = rolled(loop(), 6, 4, seed=0)
        data = replace(data, rewards=rng.normal(size=24))
        copied = take(data, np.append(np.arange(24), np.arange(4, 8)), episodes=np.repeat(np.arange(7), 4))
        np.testing.assert_array_equal(copied.units.rows[::4], [0, 1, 2, 3, 4, 5, 1])
        longer = take(data, np.append(np.arange(24), np.arange(4, 7)), episodes=np.arange(27) // 4)
        assert longer.units.count == 7 and longer.units.copied.sum() == 3

    def test_copies_are_in_one_fold(self, rng):
        data = linear_gaussian(200, rng)[0]
        again = rng.integers(0, 200, 100)
        problem = gd.Problem(
            take(data, np.append(np.arange(200), again)),
            gd.SamplingPolicy(lambda states, rng: states),
            gd.RandomFourier(5),
        )
        folds = problem.folds(4).rows
        np.testing.assert_array_equal(folds[200:], folds[again])
        assert np.bincount(folds[:200]).tolist() == [50, 50, 50, 50]

    def test_episodes_that_count_0_times_do_not_make_up_folds(self):
        data = rolled(loop(), 6, 4, seed=0)
        weights = np.repeat([1.0, 0.0, 2.0, 1.0, 0.0, 0.0], 4)
        problem = gd.Problem(replace(data, weights=weights), gd.TabularPolicy(loop()[1]))
        with pytest.raises(gd.InputError, match="needs at least 4 independent units and the log has 3"):
            problem.folds(4)


class TestStarts:
    def test_count_as_often_as_their_rows_unless_they_are_given(self):
        data = rolled(loop(), 5, 3, seed=0)
        assert known(data.start_weights).tolist() == [1.0] * 5
        weights = np.repeat([2.0, 0.0, 1.0, 3.0, 0.5], 3)
        weighted = replace(data, weights=weights)
        assert known(weighted.start_weights).tolist() == [2.0, 0.0, 1.0, 3.0, 0.5]
        assert known(replace(weighted, initial_states=[0, 1]).start_weights).tolist() == [1.0, 1.0]
        assert replace(weighted, episodes=None).start_weights is None

    def test_without_one_that_counts_there_are_none(self):
        data = rolled(loop(), 5, 3, seed=0)
        later = replace(data, weights=np.tile([0.0, 1.0, 1.0], 5))
        assert later.start_states is None and later.start_weights is None
        with pytest.raises(gd.InputError, match="initial states"):
            gd.evaluate(later, gd.TabularPolicy(loop()[1]), discount=0.9)
