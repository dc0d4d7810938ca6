"""What to deploy: nothing that is not shown to be better."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.evaluation.select import selected
from problems import random_problem


def policy(share: float) -> gd.TabularPolicy:
    return gd.TabularPolicy(np.tile([share, 1 - share], (5, 1)))


def rollout(seed: int = 0, episodes: int = 80):
    mdp, _, _ = random_problem(3)
    return mdp, mdp.rollout(np.full((5, 2), 0.5), episodes, 25, np.random.default_rng(seed))


def ordered(mdp: gd.mdp.TabularMDP) -> tuple[float, float]:
    """The better and the worse of two shares, by their true values."""
    values = {share: mdp.value(policy(share).probabilities, 0.9) for share in (0.05, 0.95)}
    return max(values, key=lambda share: values[share]), min(values, key=lambda share: values[share])


def test_what_is_shown_to_be_better_is_deployed():
    mdp, data = rollout(episodes=400)
    good, bad = ordered(mdp)
    found = gd.select(data, {"good": policy(good), "bad": policy(bad)}, 0.9)
    assert found.choice == "good" and found.better == ("good",) and not found.keeps_baseline
    assert found.reason.startswith("Deploy 'good'") and "95%" in found.reason
    assert found.ranking.differences["good"].decision == "better"
    assert found.to_dict()["choice"] == "good" and "Deploy" in str(found)


def test_a_policy_like_the_baseline_is_never_deployed():
    _, data = rollout()
    found = gd.select(data, {"now": policy(0.5), "same": policy(0.5)}, 0.9, baseline="now")
    assert found.choice is None and found.keeps_baseline and found.better == ()
    assert found.reason.startswith("Keep 'now'")


def test_the_highest_of_those_that_are_better_is_chosen():
    mdp, data = rollout(episodes=400)
    good, bad = ordered(mdp)
    middle = (good + 0.5) / 2
    found = gd.select(data, {"middle": policy(middle), "good": policy(good), "now": policy(bad)}, 0.9, baseline="now")
    assert found.choice == "good" and found.better == ("good", "middle")


def test_an_estimate_that_is_not_trusted_is_not_deployed():
    """A candidate whose actions are hardly logged may look better, and is left alone."""
    rng = np.random.default_rng(0)
    actions = (rng.random(3000) < 0.004).astype(int)
    rewards = actions + 0.1 * rng.normal(size=3000)
    data = gd.Transitions(np.zeros(3000, int), actions, rewards, np.zeros(3000, int), initial_states=[0] * 40)
    found = gd.select(
        data, {"rare": gd.TabularPolicy([[0, 1]]), "now": gd.TabularPolicy([[1, 0]])}, 0.5, baseline="now"
    )
    assert found.better == ("rare",)
    assert found.ranking.estimates["rare"].verdict is gd.Verdict.DO_NOT_TRUST
    assert found.choice is None and "not to be trusted" in found.reason


def rare_and_now(count=3000):
    """An arm that is hardly logged and pays more, another that is well known, and the policy that runs."""
    rng = np.random.default_rng(0)
    actions = rng.choice(3, size=count, p=[0.5, 0.496, 0.004])
    rewards = np.array([0.0, -1.0, 1.0])[actions] + 0.1 * rng.normal(size=count)
    data = gd.Transitions(np.zeros(count, int), actions, rewards, np.zeros(count, int), initial_states=[0] * 40)
    return data, {name: gd.TabularPolicy(np.eye(3)[[arm]]) for arm, name in enumerate(("now", "low", "rare"))}


def test_the_verdict_is_that_of_the_choice_or_the_worst_if_the_baseline_is_kept():
    data, arms = rare_and_now()
    kept = gd.select(data, arms, 0.5, baseline="now")
    assert kept.choice is None and kept.ranking.estimates["now"].verdict is gd.Verdict.TRUST
    assert kept.verdict is gd.Verdict.DO_NOT_TRUST
    assert kept.reasons == tuple(f"rare: {reason}" for reason in kept.ranking.estimates["rare"].reasons) != ()
    without = {name: arms[name] for name in ("now", "low")}
    chosen = gd.select(data, without, 0.5, baseline="low")
    assert chosen.choice == "now" and chosen.verdict is gd.Verdict.TRUST and chosen.reasons == ()
    for found in (kept, chosen):
        assert found.to_dict()["overall_verdict"] == str(found.verdict)
        assert found.to_dict()["reasons"] == list(found.reasons)
        shown = [line for line in str(found).splitlines() if line.startswith("verdict ")]
        assert shown == [f"verdict    {found.verdict}"]


def test_a_rankings_verdict_is_that_of_those_that_may_be_best():
    data, arms = rare_and_now()
    ranking = gd.rank(data, arms, 0.5, baseline="now")
    assert ranking.best_set == ("rare",) and ranking.verdict is gd.Verdict.DO_NOT_TRUST
    assert ranking.reasons == tuple(f"rare: {reason}" for reason in ranking.estimates["rare"].reasons)
    assert ranking.to_dict()["overall_verdict"] == "do not trust" and ranking.to_dict()["reasons"] == list(
        ranking.reasons
    )
    shown = "\n".join(["verdict    do not trust", *(f"  because  {reason}" for reason in ranking.reasons)])
    assert str(ranking).endswith(shown)
    # An estimate that is not to be trusted, of a policy that cannot be the best, changes nothing.
    worse = gd.rank(replace(data, rewards=-np.abs(data.rewards) * (data.actions > 0)), arms, 0.5, baseline="now")
    assert worse.estimates["rare"].verdict is gd.Verdict.DO_NOT_TRUST
    assert worse.best_set == ("now",) and worse.verdict is gd.Verdict.TRUST and worse.reasons == ()


def test_rankings_at_several_discounts_have_the_worst_verdict():
    data, arms = rare_and_now()
    found = gd.rank(data, arms, [0.0, 0.5], baseline="now")
    assert found.verdict is gd.Verdict.DO_NOT_TRUST
    assert found.reasons == tuple(f"discount {own:g}: {why}" for own in found for why in found[own].reasons) != ()
    assert found.to_dict()["overall_verdict"] == "do not trust" and found.to_dict()["reasons"] == list(found.reasons)


def test_it_takes_one_discount():
    _, data = rollout()
    with pytest.raises(gd.InputError, match="one discount"):
        gd.select(data, {"a": policy(0.3)}, [0.5, 0.9])  # pyright: ignore[reportArgumentType]


@pytest.mark.slow
def test_false_deployments_are_held_at_the_level():
    """Ten candidates that are no better than the baseline: of 200 logs at most 9% deploy one (5%, and chance)."""
    rng, false = np.random.default_rng(0), 0
    candidates = {str(k): gd.TabularPolicy(rng.dirichlet([1, 1], 2)) for k in range(10)}
    candidates["now"] = gd.TabularPolicy(np.full((2, 2), 0.5))
    for seed in range(200):
        draw = np.random.default_rng(seed)
        states, actions = draw.integers(0, 2, 1500), draw.integers(0, 2, 1500)
        data = gd.Transitions(
            states, actions, draw.normal(size=1500), draw.integers(0, 2, 1500), initial_states=[0, 1] * 30
        )
        found = selected(gd.rank(data, candidates, 0.5, baseline="now"))
        false += found.choice is not None
    assert false <= 18
