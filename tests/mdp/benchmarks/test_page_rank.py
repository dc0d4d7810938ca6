"""Offline PageRank at full size, and its graph."""

import numpy as np
import pytest

import gradientdice as gd


@pytest.fixture(scope="module")
def web():
    return gd.mdp.offline_page_rank(100_000)


@pytest.mark.parametrize("which", [0, 1])
def test_stationary_distribution_of_a_hundred_thousand_pages(web, which):
    policy = gd.mdp.page_rank_policies(web)[which]
    occupancy = web.occupancy(policy, 1.0)
    assert occupancy.shape == (100_001, 2) and occupancy.sum() == pytest.approx(1, abs=1e-12)
    states = occupancy.sum(axis=1)
    assert np.abs(web.transition.T @ occupancy.ravel() - states).sum() < 1e-10
    # Plain power iteration forgets its start as (1 − restart)^t.
    power = np.full(100_001, 1 / 100_001)
    for _ in range(200):
        power = web.transition.T @ (power[:, None] * policy).ravel()
    assert np.abs(power - states).sum() < 1e-10
    # Pr(portal) = restart · Pr(page).
    assert states[-1] == pytest.approx(0.15 / 1.15, rel=1e-10)


def test_discounted_answers_at_full_size(web):
    policy = gd.mdp.page_rank_policies(web)[0]
    occupancy, q = web.occupancy(policy, 0.95), web.q_values(policy, 0.95)
    flow = 0.05 * web.initial + 0.95 * (web.transition.T @ occupancy.ravel())
    assert np.abs(occupancy.sum(axis=1) - flow).sum() < 1e-12
    assert (1 - 0.95) * q[-1] @ policy[-1] == pytest.approx(web.value(policy, 0.95), rel=1e-10)


def test_given_a_page_the_first_action_is_page_rank():
    """Against the textbook's dense matrix: damping 0.85 and a uniform jump."""
    mdp = gd.mdp.offline_page_rank(60, 2, seed=3)
    links = gd.mdp.preferential_attachment(60, 2, np.random.default_rng(3))
    adjacency = np.zeros((60, 60))
    adjacency[links[:, 0], links[:, 1]] = adjacency[links[:, 1], links[:, 0]] = 1
    google = 0.85 * adjacency / adjacency.sum(axis=1, keepdims=True) + 0.15 / 60
    rank = np.linalg.matrix_power(google, 512)[0]
    pages = mdp.occupancy(np.tile([1.0, 0.0], (61, 1)), 1.0)[:60, 0]
    np.testing.assert_allclose(pages / pages.sum(), rank, rtol=1e-10)
    degree = adjacency.sum(axis=1)
    preferred = mdp.transition[[2 * 7 + 1]].toarray().ravel()
    np.testing.assert_allclose(preferred[:60], 0.85 * adjacency[7] * degree / (adjacency[7] @ degree))


def test_the_graph_is_scale_free():
    links = gd.mdp.preferential_attachment(20_000, 3, np.random.default_rng(0))
    assert len(links) == 6 + 3 * (20_000 - 4)
    assert (links[:, 0] < links[:, 1]).all() and len(np.unique(links, axis=0)) == len(links)
    degree = np.bincount(links.ravel())
    # Barabási and Albert's law for large graphs: Pr(degree = k) = 2m(m+1) / (k(k+1)(k+2)).
    for k in range(3, 8):
        assert np.mean(degree == k) == pytest.approx(24 / (k * (k + 1) * (k + 2)), abs=4 * np.sqrt(0.25 / 20_000))
    assert degree.max() > 100


def test_the_same_seed_is_the_same_graph():
    first, second, third = (gd.mdp.offline_page_rank(200, seed=seed).transition.toarray() for seed in (0, 0, 1))
    assert np.array_equal(first, second) and not np.array_equal(first, third)
