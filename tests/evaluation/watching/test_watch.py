"""Looks while a policy is trained: at the right steps, with the figures of `evaluate`, and an early stop."""

import numpy as np
import pytest

import gradientdice as gd

MDP = gd.mdp.boyan_chain("continuing")
DATA = MDP.sample(3000, np.full((13, 2), 1 / 26), np.random.default_rng(0))


def table(share):
    return np.tile([share, 1 - share], (13, 1))


def test_the_figures_are_those_of_evaluate():
    watch = gd.Watch(DATA, discount=0.9, every=100)
    watch.look(100, table(0.3))
    estimate = gd.evaluate(DATA, gd.TabularPolicy(table(0.3)), discount=0.9, effort="quick")
    assert watch.history[0] == {"step": 100, **estimate.metrics(), "reason": ""}
    assert watch.to_frame()["value"].tolist() == [estimate.value]


def test_the_verdict_is_that_of_the_last_look():
    watch = gd.Watch(DATA, discount=0.9, every=100)
    assert watch.verdict is None and watch.reasons == ()
    watch.look(100, table(0.3))
    estimate = gd.evaluate(DATA, gd.TabularPolicy(table(0.3)), discount=0.9, effort="quick")
    assert watch.verdict is estimate.verdict and watch.reasons == tuple(estimate.reasons)
    few = gd.Watch(MDP.sample(40, np.full((13, 2), 1 / 26), np.random.default_rng(0)), discount=0.9)
    few.look(1, table(0.3))
    assert few.verdict is gd.Verdict.DO_NOT_TRUST and few.reasons and few.history[-1]["verdict"] == 0


def test_looks_are_due_once_per_interval():
    watch = gd.Watch(DATA, discount=0.9, every=100)
    looked = [step for step in range(0, 450, 30) if watch.due(step) and watch.look(step, table(0.5)) is not None]
    assert looked == [120, 210, 300, 420]


def test_training_ends_after_looks_without_progress():
    watch = gd.Watch(DATA, discount=0.9, every=1, patience=2)
    lows, step = [], 0
    for step, share in enumerate((0.9, 0.5, 0.1, 0.5, 0.9), start=1):
        going_on = watch.look(step, table(share))
        lows.append(watch.history[-1]["low"])
        if not going_on:
            break
    assert lows[0] < lows[1] < lows[2] and max(lows[3:]) < lows[2], "moving on pays, in this chain"
    assert step == 5 and watch.stopped


def test_what_the_log_never_shows_is_no_progress():
    data = gd.load(
        {
            "obs": [0.1, 0.2, 0.4] * 20,
            "next_obs": [0.2, 0.4, 0.1] * 20,
            "action": [0, 1, 0] * 20,
            "reward": [1.0, 0.0, 0.0] * 20,
        }
    )
    watch = gd.Watch(data, discount=1.0, every=1, patience=1)
    assert not watch.look(1, gd.DiscretePolicy(lambda s: np.tile([0.0, 0.0, 1.0], (len(s), 1)), 3))
    assert "never contains" in watch.history[0]["reason"]
    assert watch.verdict is gd.Verdict.DO_NOT_TRUST and watch.reasons == (watch.history[0]["reason"],)


def test_d3rlpys_callback_ends_training_in_a_block_only():
    watch, steps = gd.Watch(DATA, discount=0.9, every=10, patience=1), []

    def fit(callback):
        for step in range(1, 101):
            steps.append(step)
            callback(table(0.5), 0, step)

    with watch.d3rlpy() as callback:
        fit(callback)
    assert steps[-1] == 20 and [look["step"] for look in watch.history] == [10, 20]
    fit(gd.Watch(DATA, discount=0.9, every=50, patience=1).d3rlpy())
    assert steps[-1] == 100
    with pytest.raises(ZeroDivisionError), watch.d3rlpy():
        _ = 1 / 0


@pytest.mark.parametrize(
    ("name", "value"), [("data", 3), ("discount", 2.0), ("every", 0), ("patience", -1), ("effort", "some")]
)
def test_wrong_settings(name, value):
    with pytest.raises(gd.InputError, match=name):
        gd.Watch(**{"data": DATA, "discount": 0.9, name: value})
