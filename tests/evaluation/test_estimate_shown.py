"""In a terminal, where a name is typed, answers show what `print` shows, not every number that they hold."""

import numpy as np
import pytest

import gradientdice as gd

MDP = gd.mdp.boyan_chain("continuing")
POLICY = gd.TabularPolicy(np.tile([0.1, 0.9], (13, 1)))


@pytest.fixture(scope="module")
def data():
    return MDP.rollout(np.full((13, 2), 0.5), episodes=30, horizon=20, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    "answer",
    [
        lambda data: gd.evaluate(data, POLICY, discount=0.9),
        lambda data: gd.evaluate(data, POLICY, discount=0.9).improvement,
        lambda data: gd.evaluate(data, POLICY, discount=[0.5, 0.9]),
        lambda data: gd.rank(data, {"one": POLICY}, 0.9),
        lambda data: gd.select(data, {"one": POLICY}, 0.9),
        lambda data: gd.segments(data, POLICY, by=data.start_states > 6, discount=0.9),
        lambda data: gd.posterior(data, POLICY, discount=0.9),
    ],
    ids=["estimate", "difference", "curve", "ranking", "selection", "segments", "posterior"],
)
def test_repr_is_what_print_shows(data, answer):
    found = answer(data)
    assert repr(found) == str(found) and "array(" not in repr(found)
