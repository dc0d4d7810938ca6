"""Answers that are others than in version 0.2, each on purpose: what changed, why, and how it is known to be right.

All other answers are held by the tests of their parts. An entry here is a question of version 0.2 whose answer was
wrong, with the exact truth, which the new answer is nearer to.
"""

import numpy as np
import pytest

import gradientdice as gd

# (seed, episodes, length, chance of an end, discount) -> the mean return of version 0.2. Its weighted episodes were worth
# 8 to 13 episodes of the policy itself; the policy is simulated instead, and the exact truth is nearer to that.
DISTRIBUTIONS = {
    (0, 150, 20, 0.0, 0.9): 4.771100749,
    (1, 300, 40, 0.06, 0.9): -2.395355195,
    (1, 300, 40, 0.06, 1.0): -3.741051770,
}


def logged(seed: int, episodes: int, length: int, end: float) -> tuple[gd.Transitions, np.ndarray, tuple]:
    """Episodes of a random MDP with six states and two actions, whose behaviour is known."""
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.ones(6), size=(6, 2))
    rewards, initial = rng.normal(size=(6, 2)), rng.dirichlet(np.ones(6))
    target, behavior = rng.dirichlet(np.ones(2), size=6), rng.dirichlet(5 * np.ones(2), size=6)
    rng, rows = np.random.default_rng(seed + 100), []
    for episode in range(episodes):
        state = rng.choice(6, p=initial)
        for step in range(length):
            action = rng.choice(2, p=behavior[state])
            after = rng.choice(6, p=transition[state, action])
            ended = rng.random() < end
            reward, cut = rewards[state, action] + rng.normal(), step == length - 1 and not ended
            rows.append((state, action, reward, after, ended, cut, episode, np.log(behavior[state, action])))
            state = after
            if ended:
                break
    states, actions, paid, following, ended, cut, episode, log_probs = (
        np.array(column) for column in zip(*rows, strict=True)
    )
    data = gd.Transitions(
        states, actions, paid, following,
        terminated=ended, truncated=cut, episodes=episode, behavior_log_probs=log_probs,
    )  # fmt: skip
    return data, target, (transition, rewards, initial)


@pytest.mark.parametrize("case", DISTRIBUTIONS)
def test_few_effective_episodes_are_simulated_and_nearer_to_the_truth(case):
    seed, episodes, length, end, discount = case
    data, target, (transition, rewards, initial) = logged(seed, episodes, length, end)
    going_on = discount * (1 - end) * np.einsum("sa,sat->st", target, transition)
    truth = float(initial @ np.linalg.solve(np.eye(6) - going_on, (target * rewards).sum(axis=1)))
    found = gd.return_distribution(data, gd.TabularPolicy(target), discount)
    assert found.source == "model" and any("episodes" in note for note in found.notes)
    assert abs(found.mean - truth) < 0.5 * abs(DISTRIBUTIONS[case] - truth)
    weighted = gd.return_distribution(data, gd.TabularPolicy(target), discount, source="episodes") if end == 0 else None
    assert weighted is None or weighted.verdict is gd.Verdict.DO_NOT_TRUST
