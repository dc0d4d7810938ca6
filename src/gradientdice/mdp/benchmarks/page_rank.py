"""Offline PageRank: where a surfer on a scale-free graph spends the time, from another surfer's clicks."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import csr_array

from gradientdice.base.arrays import require_memory, require_rng
from gradientdice.base.errors import InputError, require_count, require_number
from gradientdice.mdp.finite import SparseMDP, require_mdp


def offline_page_rank(pages: int = 1000, links: int = 3, restart: float = 0.15, seed: int = 0) -> SparseMDP:
    """A random surfer on a Barabási–Albert graph with two ways to choose the next link; meant for discount 1.

    Action 0 follows any link of the page, action 1 prefers pages with many links, in proportion to their number. With
    probability `restart` the surfer goes to the portal instead, the state after the last page, from which any page is
    equally likely. So no row but the portal's is long, and given that the surfer is on a page, the stationary
    distribution under action 0 is exactly PageRank with damping 1 − restart. A page pays the logarithm of its number of
    links over `links`; the portal, where the surfer begins, pays nothing.

    Args:
        pages: the number of pages.
        links: how many earlier pages each new page links to; links go both ways.
        restart: the probability of leaving for the portal.
        seed: of the graph.

    References:
        Barabási and Albert 1999 for the graph; Page, Brin, Motwani and Winograd 1999 for the surfer; Zhang, Dai, Li and
        Schuurmans 2020, GenDICE, for the task of ranking from logged clicks.
    """
    require_count("pages", pages, low=2)
    require_count("seed", seed, low=0)
    restart = require_number("restart", restart, low=0, high=1, open_low=True)
    edges = preferential_attachment(pages, links, np.random.default_rng(seed))
    source = np.concatenate([edges[:, 0], edges[:, 1]])
    target = np.concatenate([edges[:, 1], edges[:, 0]])
    degree = np.bincount(source, minlength=pages)
    portal, every = pages, np.arange(pages)
    preference = degree[target].astype(np.float64)
    preference /= np.bincount(source, weights=preference, minlength=pages)[source]
    rows, columns, shares = [], [], []
    for action, follow in enumerate((1 / degree[source], preference)):
        rows += [2 * source + action, 2 * every + action, np.full(pages, 2 * portal + action)]
        columns += [target, np.full(pages, portal), every]
        shares += [(1 - restart) * follow, np.full(pages, restart), np.full(pages, 1 / pages)]
    places = (np.concatenate(rows), np.concatenate(columns))
    transition = csr_array((np.concatenate(shares), places), shape=(2 * (pages + 1), pages + 1))
    interest = np.append(np.log(degree / degree.min()), 0.0)
    return SparseMDP(transition, np.tile(interest[:, None], 2), np.eye(1, pages + 1, portal)[0])


def page_rank_policies(mdp: SparseMDP) -> tuple[Float[np.ndarray, "S 2"], Float[np.ndarray, "S 2"]]:
    """The target prefers pages with many links 8 times in 10, the behaviour 3 times in 10."""
    require_mdp(mdp)
    states = mdp.num_states
    return np.tile([0.2, 0.8], (states, 1)), np.tile([0.7, 0.3], (states, 1))


def preferential_attachment(pages: int, links: int, rng: np.random.Generator) -> Int[np.ndarray, "edges 2"]:
    """The edges of a Barabási–Albert graph: each new page links to `links` earlier ones, drawn by their degrees.

    It grows from links + 1 pages that are all linked to each other.
    """
    pages, links = require_count("pages", pages), require_count("links", links)
    require_rng(rng)
    # As Python's own numbers, of which a dozen or so belong to each link.
    require_memory("The graph", pages, links, 12, remedy="Take fewer pages or links.")
    if pages <= links:
        raise InputError(f"pages must be more than links, {links}, not {pages}: a page links to others only.")
    edges = [(first, second) for second in range(links + 1) for first in range(second)]
    # Every page stands here once for each of its edges: a uniform pick is a pick by degree.
    ends = [page for edge in edges for page in edge]
    uniform = iter(rng.random(4 * pages * links).tolist())
    for page in range(links + 1, pages):
        chosen: dict[int, None] = {}
        while len(chosen) < links:
            # The ready-made draws nearly always last: repeated picks are rare but for the first few pages.
            position = next(uniform, None)
            chosen[ends[int((rng.random() if position is None else position) * len(ends))]] = None
        edges += [(other, page) for other in chosen]
        for other in chosen:
            ends += (other, page)
    return np.array(edges, dtype=np.int64)
