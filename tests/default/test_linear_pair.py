"""A search's ratio and Q as functions of any row: at the sample's own rows they are what the search found there."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.default import linear_pair as module
from gradientdice.default.learners import Learners
from gradientdice.default.linear_pair import LinearPair, linear_pair, predictions
from gradientdice.default.ridge_scores import ridge_scores
from gradientdice.default.search import RIDGES, FunctionSearch, search_functions
from gradientdice.statistics.influence import HeldOutQ
from problems import known

RNG = np.random.default_rng(0)
STATES = RNG.normal(size=(800, 2))
FOLLOWING = 0.5 * STATES + 0.2 * RNG.normal(size=(800, 2))
DATA = gd.Transitions(STATES, RNG.integers(0, 2, size=800), FOLLOWING[:, 0], FOLLOWING, initial_states=STATES[::8])
POLICY = gd.DiscretePolicy(lambda states: np.tile([0.3, 0.7], (len(states), 1)), 2)


SLOPE = np.array([1.0, -2.0])
# A Q that is known: linear in the state, the same for both actions.
VALUES = HeldOutQ(STATES @ SLOPE, FOLLOWING @ SLOPE, known(DATA.start_states) @ SLOPE)


class FakeModel:
    """A model that says this."""

    values, spreads, left_share, by_discount, lasting = (0.0,), (0.0,), 0.0, ((VALUES,),), (1.0,)

    def notes(self, number: int) -> tuple[str, ...]:
        return ()


def searched(simulate=None) -> tuple[FunctionSearch, LinearPair]:
    (search,) = search_functions(gd.Problem(DATA, POLICY), [0.8], Learners(simulate), pairs=True)
    return search, known(search.pair)


def at_rows(pair: LinearPair) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    found = [predictions(pair.ratio_params, pair.value_params, design) for _, design in pair.rows.chunks()]
    ratio, q, following = (np.concatenate(column) for column in zip(*found, strict=True))
    return ratio, q, following


def test_the_ratio_and_the_residual_are_near_those_that_were_held_out():
    search, pair = searched()
    ratio, q, following = at_rows(pair)
    answer = search.chosen.answer
    residual = DATA.rewards + 0.8 * following - q - 0.2 * pair.level
    assert np.corrcoef(ratio, known(answer.ratio))[0, 1] > 0.9
    assert np.corrcoef(residual, known(answer.influence).residual)[0, 1] > 0.9


def test_nothing_is_kept_unless_it_is_asked_for():
    (search,) = search_functions(gd.Problem(DATA, POLICY), [0.8])
    assert search.pair is None


def test_a_models_q_is_fitted_to_the_features():
    found = module._smoothed(searched()[1].rows, [VALUES], np.array([1.0]))
    pair = LinearPair(0.8, searched()[1].rows, found, found, 0.0)
    _, q, following = at_rows(pair)
    for fitted, value in ((q, VALUES.q), (following, VALUES.next_value)):
        assert np.mean((fitted - value) ** 2) < 0.01 * np.var(value)
    # V at the initial states has as much weight as all rows: the answer has a mean of it.
    starts = np.asarray(known(pair.rows.initial).predict(found[:, None]))[:, 0]
    assert abs(np.mean(starts - VALUES.initial_value)) < 0.01


def test_weights_are_those_of_the_candidates():
    """Of the kernel's Qs, the model's and 0, in this order; only the kernel's have a level."""
    search, pair = searched(lambda *_: FakeModel())
    weights = search.chosen.weights
    assert weights.sum() == pytest.approx(1) and len(weights) == len(RIDGES) + 2
    (path,) = ridge_scores(pair.rows, gd.Problem(DATA, POLICY).folds(4), [0.8], RIDGES)
    for place in (0, len(RIDGES), len(RIDGES) + 1):
        alone = replace(search.chosen, weights=np.eye(len(weights))[place])
        found = linear_pair(pair.rows, path, [VALUES], alone)
        assert (found.level != 0) == (place == 0)
        assert found.value_params.any() == (place <= len(RIDGES))
    np.testing.assert_allclose(found.ratio_params, pair.ratio_params)
