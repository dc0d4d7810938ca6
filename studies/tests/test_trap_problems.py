"""The small problems behind the trap families: their values are exact, and their rewards have the means they say."""

import numpy as np
import pytest

from gradientdice_studies.traps.families import simulated, small, starts, tails
from gradientdice_studies.traps.families.simulated import (
    PushedPoint,
    Table,
    exponential,
    lognormal,
    normal,
    pareto,
    rare,
)


@pytest.mark.parametrize(
    "rewards",
    [normal(0.5), exponential, pareto(3.5), lognormal(1.0), rare(100, 0.01), simulated.clicks],
    ids=["normal", "exponential", "Pareto", "lognormal", "rare", "clicks"],
)
def test_rewards_have_their_means(rng, rewards):
    drawn = rewards(np.full(400_000, 0.7), rng)
    assert drawn.mean() == pytest.approx(0.7, abs=4.5 * drawn.std() / np.sqrt(len(drawn)))


def test_the_value_of_a_drift_is_that_of_a_simulation(rng):
    drift, discount, n = PushedPoint(decay=0.7, push=0.8, slope=0.15, takes=0.7), 0.9, 20_000
    state, total = 0.4 * rng.normal(size=n), np.zeros(n)
    for step in range(120):
        action = rng.random(n) < drift.takes
        total += (1 - discount) * discount**step * (1 + 0.3 * action + drift.slope * state)
        state = drift.decay * state + drift.push * (action - 0.5) + 0.3 * rng.normal(size=n)
    assert total.mean() == pytest.approx(drift.value(discount), abs=5 * total.std() / np.sqrt(n))


def test_a_table_logs_its_behaviour_and_its_dynamics(rng):
    table = Table(4, 3, seed=1)
    data = table.log(60_000, normal(0.0), rng)
    counts = np.zeros((4, 3))
    np.add.at(counts, (data.states, data.actions), 1)
    np.testing.assert_allclose(counts / counts.sum(axis=1, keepdims=True), table.behavior, atol=0.02)
    np.testing.assert_allclose(data.rewards, table.mdp.reward[data.states, data.actions])
    episodes = table.episodes(5, 7, normal(0.0), rng)
    assert len(episodes) == 35 and episodes.start_states is not None
    np.testing.assert_array_equal(episodes.states[1:7], episodes.next_states[:6])


@pytest.mark.parametrize("module", [tails, starts, small], ids=lambda module: module.__name__.rsplit(".", 1)[-1])
def test_every_trap_has_problems_to_develop_on_and_others_to_report(module):
    families = module.families()
    for trap in {family.trap for family in families}:
        assert {family.half for family in families if family.trap == trap} == {"develop", "report"}
    assert "honest" in {family.trap for family in families}
