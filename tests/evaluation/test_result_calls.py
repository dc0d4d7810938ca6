"""Calls of results, and labels, that are refused in a sentence."""

import numpy as np
import pytest

import gradientdice as gd

MDP = gd.mdp.boyan_chain("episodic")
HALF = np.full((13, 2), 0.5)
DATA = MDP.rollout(HALF, 20, 10, np.random.default_rng(0))
POLICY = gd.TabularPolicy(HALF)


@pytest.mark.parametrize("discount", [np.array(0.9), "0.9", np.full((2, 2), 0.5)])
def test_a_discount_is_a_number_or_a_list_of_them(discount):
    for call in (lambda: gd.evaluate(DATA, POLICY, discount=discount), lambda: gd.rank(DATA, {"a": POLICY}, discount)):
        with pytest.raises(gd.InputError, match="discount must be a number or a list of numbers"):
            call()


@pytest.mark.parametrize(
    "labels",
    [
        np.where(np.arange(len(DATA)) == 3, np.nan, 1.0),
        np.array(["a", None] * (len(DATA) // 2), dtype=object),
        np.array([object()] * len(DATA)),
        np.array(["2020-01-01", "NaT"] * (len(DATA) // 2), dtype="M8[D]"),
        np.ones(len(DATA), dtype=complex),
    ],
    ids=["NaN", "None", "objects", "NaT", "complex"],
)
def test_a_label_that_is_missing_makes_no_group(labels):
    with pytest.raises(gd.InputError, match="by must have a label for each of them"):
        gd.segments(DATA, POLICY, by=labels, of="rows", discount=0.9)


def test_masked_and_ragged_labels():
    for labels, message in (
        (np.ma.MaskedArray(np.ones(len(DATA)), np.arange(len(DATA)) == 3), "by has a masked value, first in row 3"),
        ([[1], [1, 2]], "by cannot be made into an array: rows of different lengths"),
    ):
        with pytest.raises(gd.InputError, match=message):
            gd.segments(DATA, POLICY, by=labels, of="rows", discount=0.9)


def test_texts_of_a_data_frame_are_labels():
    labels = np.array(["a", "b"] * (len(DATA) // 2), dtype=object)
    assert [group.group for group in gd.segments(DATA, POLICY, by=labels, of="rows", discount=0.9).groups] == ["a", "b"]


def test_a_million_draws_are_enough():
    with pytest.raises(gd.InputError, match="draws must be at most 1,000,000"):
        gd.posterior(DATA, POLICY, discount=0.9, draws=10**9)


def test_names_in_posteriors():
    with pytest.raises(gd.InputError, match="names of policies must be texts"):
        gd.posterior(DATA, {1: POLICY}, discount=0.9)  # pyright: ignore[reportArgumentType, reportCallIssue]
    found = gd.posterior(DATA, {"a": POLICY, "b": POLICY}, discount=0.9, draws=100)
    with pytest.raises(gd.InputError, match="There is no policy"):
        found.difference("a", ["b"])  # pyright: ignore[reportArgumentType]


def test_what_is_asked_of_a_distribution():
    found = gd.return_distribution(DATA, POLICY, 0.9)
    for call, message in (
        (lambda: found.cdf([1.0, np.nan]), "x has a NaN"),
        (lambda: found.interval("mean", 0.5), "has no p"),
        (lambda: found.interval(np.zeros(2)), "what must be"),  # pyright: ignore[reportArgumentType]
    ):
        with pytest.raises(gd.InputError, match=message):
            call()


def test_a_watch_is_told_steps_and_policies():
    watch = gd.Watch(DATA, 0.9)
    for call, message in (
        (lambda: watch.due(1.5), "step"),  # pyright: ignore[reportArgumentType]
        (lambda: watch.look(1, "nothing"), "policy"),
    ):
        with pytest.raises(gd.InputError, match=message):
            call()
    assert not watch.history


def test_an_action_with_a_high_number_takes_no_memory():
    with pytest.raises(gd.InputError, match="probabilities would take .* GiB"):
        gd.policy([10**12])


@pytest.mark.parametrize(
    ("seeds", "message"),
    [([[1], [1, 2]], "must be a whole number"), (np.zeros((2, 2)), "a list of them"), ([1, 1], "one number twice")],
)
def test_seeds_of_a_sweep(seeds, message):
    solver = gd.PrimalDual(3, 0.1)
    with pytest.raises(gd.InputError, match=message):
        gd.sweep(DATA, POLICY, gd.GradientDICE(0.5), gd.Tabular(13, 2), solver, seeds=seeds, progress=False)
