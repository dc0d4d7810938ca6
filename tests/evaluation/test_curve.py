"""One policy at several discounts."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.report.curve_page import render_curve
from problems import known, linear_system, random_problem


@pytest.fixture(scope="module")
def log():
    mdp, _, _ = random_problem(3)
    return mdp.rollout(np.full((5, 2), 0.5), 80, 25, np.random.default_rng(0))


POLICY = gd.TabularPolicy(np.tile([0.2, 0.8], (5, 1)))


def test_a_list_of_discounts_gives_evaluates_answer_at_each(log):
    curve = gd.evaluate(log, POLICY, discount=[0.9, 0.5, 1])
    assert isinstance(curve, gd.DiscountCurve) and curve.discounts == (0.9, 0.5, 1)
    for estimate in curve:
        alone = gd.evaluate(log, POLICY, discount=estimate.discount)
        assert (estimate.value, estimate.interval) == (alone.value, alone.interval)
    assert curve[0].discount == 0.9 and len(curve[1:]) == 2


def test_the_band_contains_the_intervals_and_is_shorter_than_bonferronis(log):
    curve = gd.evaluate(log, POLICY, discount=[0.5, 0.7, 0.9])
    for estimate, (low, high) in zip(curve, known(curve.band), strict=True):
        own_low, own_high = known(estimate.interval)
        assert low < own_low and own_high < high
        assert (high - low) / (own_high - own_low) < 1.23
    assert known(gd.evaluate(log, POLICY, discount=[0.9]).band) == (gd.evaluate(log, POLICY, discount=0.9).interval,)


def test_the_table_and_the_text_say_the_same(log):
    curve = gd.evaluate(log, POLICY, discount=[0.5, 1.0])
    first, last = curve.table.to_dict("records")
    assert (first["discount"], last["discount"]) == (0.5, 1.0)
    assert (first["value"], first["total"]) == (curve[0].value, curve[0].total) and np.isnan(last["total"])
    assert str(curve).count("discount") == 3 and f"{curve[0].value:.6g}" in str(curve)
    assert [entry["value"] for entry in curve.to_dict()["estimates"]] == [estimate.value for estimate in curve]


def test_the_verdict_is_the_worst_of_the_discounts(log):
    mdp, _, _ = random_problem(3)
    rows = mdp.rollout(np.full((5, 2), 0.5), 20, 25, np.random.default_rng(0))
    curve = gd.evaluate(rows, POLICY, discount=[0.5, 0.99, 0.0])
    verdicts = [estimate.verdict for estimate in curve]
    assert len(set(verdicts)) > 1 and curve.verdict is max(verdicts, key=list(gd.Verdict).index)
    expected = [
        f"discount {estimate.discount:g}: {reason}"
        for estimate in curve
        if estimate.verdict is curve.verdict
        for reason in estimate.reasons
    ]
    assert list(curve.reasons) == expected != []
    assert str(curve).splitlines()[-1 - len(expected) :] == [
        f"verdict    {curve.verdict}",
        *(f"  because  {reason}" for reason in expected),
    ]
    assert curve.to_dict()["overall_verdict"] == str(curve.verdict) and curve.to_dict()["reasons"] == expected
    page = render_curve(curve)
    least = [f"{estimate.discount:g}" for estimate in curve if estimate.verdict is curve.verdict]
    assert f"{str(curve.verdict).capitalize()}: at discount{'s' * (len(least) > 1)} {', '.join(least)}<" in page
    trusted = gd.evaluate(log, POLICY, discount=[0.5])
    assert trusted.verdict is trusted[0].verdict


def test_searched_features_are_searched_once_for_all_discounts(monkeypatch):
    from gradientdice.default import search

    data, policy = linear_system(0)
    passes = []
    scores = getattr(search, "ridge_scores")  # noqa: B009
    monkeypatch.setattr(search, "ridge_scores", lambda *given: (passes.append(given), scores(*given))[1])
    curve = gd.evaluate(data, policy, discount=[0.5, 0.9], effort="quick")
    assert [discounts for log, _, discounts, _ in passes if log.policy is policy] == [[0.5, 0.9]]
    alone = gd.evaluate(data, policy, discount=0.9, effort="quick")
    assert curve[1].value == pytest.approx(alone.value, rel=1e-9)


def test_discounts_that_make_no_sense_are_refused(log):
    for discounts, text in (([], "empty"), ([0.5, 0.5], "twice"), ([0.5, 2.0], "discount")):
        with pytest.raises(gd.InputError, match=text):
            gd.evaluate(log, POLICY, discount=discounts)
    with pytest.raises(gd.InputError, match="Several discounts"):
        gd.evaluate(log, POLICY, gd.GradientDICE(0.9), discount=[0.5])  # pyright: ignore[reportCallIssue, reportArgumentType]


@pytest.mark.slow
def test_the_band_holds_at_all_discounts_at_once():
    mdp, _, _ = random_problem(3)
    discounts, held = [0.3, 0.6, 0.9, 1.0], 0
    truth = [mdp.value(POLICY.probabilities, discount) for discount in discounts]
    for seed in range(200):
        data = mdp.rollout(np.full((5, 2), 0.5), 80, 25, np.random.default_rng(seed))
        band = known(gd.evaluate(data, POLICY, discount=discounts).band)
        held += all(low <= value <= high for value, (low, high) in zip(truth, band, strict=True))
    assert 183 <= held
