"""What to deploy: nothing that is not shown to be better."""

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
