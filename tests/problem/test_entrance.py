"""A policy whose actions are of another kind than those of the log is refused before anything is computed."""

import numpy as np
import pyarrow as pa
import pytest

import gradientdice as gd

ROWS = 40
RNG = np.random.default_rng(0)
STATES = RNG.normal(size=(ROWS, 3))


def log(actions: np.ndarray, states: np.ndarray = STATES) -> gd.Transitions:
    return gd.Transitions(states, actions, np.ones(ROWS), states, initial_states=states[:5])


def drawn(width: int) -> gd.SamplingPolicy:
    return gd.SamplingPolicy(lambda states, rng: rng.normal(size=(len(states), width)))


@pytest.mark.parametrize(
    ("actions", "policy"),
    [
        (np.arange(ROWS) % 2, drawn(2)),
        (RNG.normal(size=(ROWS, 1)), drawn(2)),
        (RNG.normal(size=(ROWS, 2)), drawn(1)),
        (RNG.normal(size=(ROWS, 2)), gd.LoggedPolicy(next_actions=np.zeros((ROWS, 3)))),
        # What `policy` makes of a function that gives probabilities, unless it is told the number of actions.
        (np.arange(ROWS) % 2, gd.policy(lambda states: np.full((len(states), 2), 0.5))),
    ],
    ids=["discrete", "wider", "narrower", "logged", "probabilities"],
)
@pytest.mark.parametrize("states", [STATES, np.arange(ROWS) % 5], ids=["vectors", "numbers"])
@pytest.mark.parametrize("estimator", [gd.GradientDICE, gd.LSTDQ, gd.FQE, gd.ModelRollouts])
def test_actions_of_another_width(actions, policy, states, estimator):
    with pytest.raises(gd.InputError, match="The policy gives actions of . numbers each, and those of the log have"):
        gd.evaluate(log(actions, states), policy, estimator(0.9))


def test_those_of_a_scanned_log():
    table = pa.table({"states": list(STATES), "actions": np.zeros(ROWS), "rewards": np.ones(ROWS)})
    scanned = gd.scan(table.append_column("next_states", table["states"]))
    with pytest.raises(gd.InputError, match="The policy gives actions of 2 numbers each"):
        gd.evaluate(scanned, drawn(2), discount=1.0, functions=gd.RandomFourier(5, 1.0))


@pytest.mark.parametrize("kind", [int, float])
def test_one_hot_actions_are_recognised(kind):
    policy = gd.DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), 2)
    for estimator in (gd.GradientDICE(0.9), gd.ModelRollouts(0.9)):
        with pytest.raises(gd.InputError, match="actions look one-hot"):
            gd.evaluate(log(np.eye(2, dtype=kind)[np.arange(ROWS) % 2]), policy, estimator)


@pytest.mark.parametrize("functions", [None, gd.RandomFourier(5, 1.0)])
def test_a_table_with_a_row_for_each_row_of_the_log_is_told_what_it_is(functions):
    table = gd.TabularPolicy(np.full((ROWS, 2), 0.5))
    with pytest.raises(gd.InputError, match="Probabilities for each row of the log are a LoggedPolicy"):
        gd.evaluate(log(np.arange(ROWS) % 2), table, gd.GradientDICE(0.9), functions=functions)
