"""Four places that keep logs, each a finite MDP whose values are solved exactly here, apart from the library's code.

States are numbered from 0 inside the study; `Domain.states` says what an export writes for them. Two further numbers
stand for the two kinds of end: `good_end` and `bad_end`. A log is sampled from the behaviour.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from jaxtyping import Float, Int

# Episodes of the domains without a time limit end by themselves before this many rows.
LONGEST = 40


@dataclass(frozen=True, eq=False)
class Log:
    """Rows of episodes, one after the other, in the order in which they happened.

    Attributes:
        episode: the number of each row's episode.
        step: its place in the episode, from 0.
        state: the number of its state.
        action: the number of its action.
        reward: its reward.
        after: the number of the state that followed, or of the kind of end.
        ended: whether the episode ended with the row.
        cut: whether a time limit stopped the recording after it.
    """

    episode: Int[np.ndarray, " n"]
    step: Int[np.ndarray, " n"]
    state: Int[np.ndarray, " n"]
    action: Int[np.ndarray, " n"]
    reward: Float[np.ndarray, " n"]
    after: Int[np.ndarray, " n"]
    ended: np.ndarray
    cut: np.ndarray


@dataclass(frozen=True, eq=False)
class Domain:
    """An MDP, what its exports call things, and the behaviour that is logged.

    Attributes:
        name: in the table.
        columns: field -> the columns that hold it.
        states: what an export writes for each state, a row per state; words or numbers.
        actions: a word for each action.
        coded: whether exports write the actions' codes where nothing else is asked for.
        moves: P(what follows | state, action), with the two kinds of end as the last two columns.
        rewards: the mean reward of each state, action and what followed.
        noise: the standard deviation of rewards that are not 0.
        starts: the distribution of first states.
        behavior: the policy that is logged.
        discount: γ.
        episodes: how many an export has.
        limit: rows after which a recording stops.
        seed: of the log.
    """

    name: str
    columns: dict[str, tuple[str, ...]]
    states: np.ndarray
    actions: tuple[str, ...]
    coded: bool
    moves: Float[np.ndarray, "S A T"]
    rewards: Float[np.ndarray, "S A T"]
    noise: float
    starts: Float[np.ndarray, " S"]
    behavior: Float[np.ndarray, "S A"]
    discount: float
    episodes: int
    limit: int
    seed: int

    @property
    def good_end(self) -> int:
        """The number that follows the last row of an episode that ended well."""
        return len(self.states)

    @property
    def bad_end(self) -> int:
        """The number that follows the last row of an episode that ended badly."""
        return len(self.states) + 1

    @cached_property
    def better(self) -> Int[np.ndarray, " S"]:
        """A rule that is better than the behaviour: in each state the action that its own values say is best."""
        return self._action_values().argmax(axis=1)

    @cached_property
    def worse(self) -> Int[np.ndarray, " S"]:
        """A rule that is worse than the behaviour: in each state the action that its own values say is worst."""
        return self._action_values().argmin(axis=1)

    def table(self, rule: Int[np.ndarray, " S"]) -> Float[np.ndarray, "S A"]:
        """The probabilities of a rule."""
        return np.eye(len(self.actions))[rule]

    def value(self, policy: Float[np.ndarray, "S A"]) -> float:
        """(1−γ) E[Σ γᵗ r], exactly; at discount 1 the average reward, with a new episode after each end."""
        reward = np.einsum("sa,sat,sat->s", policy, self.moves, self.rewards)
        following = np.einsum("sa,sat->st", policy, self.moves)
        count = len(self.states)
        if self.discount == 1:
            chain = following[:, :count] + np.outer(following[:, count:].sum(axis=1), self.starts)
            system = np.vstack([chain.T - np.eye(count), np.ones(count)])
            share = np.linalg.lstsq(system, np.append(np.zeros(count), 1.0), rcond=None)[0]
            return float(share @ reward)
        worth = np.linalg.solve(np.eye(count) - self.discount * following[:, :count], reward)
        return float((1 - self.discount) * self.starts @ worth)

    def log(self, limit: int | None = None) -> Log:
        """Episodes of the behaviour, cut after `limit` rows."""
        return _sampled(self, self.limit if limit is None else limit)

    def _action_values(self) -> Float[np.ndarray, "S A"]:
        """Q of the behaviour; for the average reward, of nearly as far a horizon in the chain with restarts."""
        count, discount, moves = len(self.states), self.discount, self.moves[..., : len(self.states)]
        if discount == 1:
            discount, ends = 0.999, self.moves[..., count:].sum(axis=2)
            moves = moves + ends[..., None] * self.starts
        reward = (self.moves * self.rewards).sum(axis=2)
        following = np.einsum("sa,sat->st", self.behavior, moves)
        worth = np.linalg.solve(np.eye(count) - discount * following, (self.behavior * reward).sum(axis=1))
        return reward + discount * moves @ worth


@cache
def _sampled(domain: Domain, limit: int) -> Log:
    rng, count = np.random.default_rng(domain.seed), len(domain.states)
    here = np.arange(domain.episodes)
    state = rng.choice(count, size=domain.episodes, p=domain.starts)
    rows = []
    for step in range(limit):
        action = _drawn(domain.behavior[state], rng)
        after = _drawn(domain.moves[state, action], rng)
        mean = domain.rewards[state, action, after]
        reward = np.round(mean + domain.noise * (mean != 0) * rng.normal(size=len(here)), 3)
        ended = after >= count
        cut = ~ended & (step == limit - 1)
        rows.append((here, np.full(len(here), step), state, action, reward, after, ended, cut))
        here, state = here[~ended], after[~ended]
    columns = [np.concatenate(column) for column in zip(*rows, strict=True)]
    order = np.lexsort((columns[1], columns[0]))
    return Log(*(column[order] for column in columns))


def _drawn(probabilities: Float[np.ndarray, "n k"], rng: np.random.Generator) -> Int[np.ndarray, " n"]:
    below = rng.random((len(probabilities), 1)) > probabilities.cumsum(axis=1)
    return np.minimum(below.sum(axis=1), probabilities.shape[1] - 1)


def hospital() -> Domain:
    """A ward: severity 1 to 6, three drugs, +1 on the day on which a patient goes home, 0 for a death."""
    recovers = np.array([[0.85, 0.60, 0.40]] * 2 + [[0.60, 0.75, 0.45]] * 2 + [[0.20, 0.40, 0.70]] * 2)
    moves, rewards = _empty(6, 3)
    for severity in range(6):
        up = severity + 1 if severity < 5 else 7
        down = severity - 1 if severity > 0 else 6
        moves[severity, :, down] = recovers[severity]
        moves[severity, :, severity] = 0.02
        moves[severity, :, up] = 0.98 - recovers[severity]
    rewards[:, :, 6] = 1.0
    behavior = np.array([[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.3, 0.35, 0.35]] * 2)
    names = {"episodes": ("patient",), "states": ("severity",), "actions": ("drug",), "rewards": ("outcome",)}
    starts = np.array([0, 0, 0.6, 0.4, 0, 0])
    severities, drugs = np.arange(1, 7)[:, None], ("steroid", "aspirin", "heparin")
    return Domain(
        "hospital", names, severities, drugs, False, moves, rewards, 0.0, starts, behavior, 0.9, 500, LONGEST, 15
    )


def shop() -> Domain:
    """Sessions on a shop's pages: three kinds of offer, revenue at the checkout, an end when the visitor leaves."""
    pages = ("landing", "browse", "search", "product", "cart", "checkout")
    landing, browse, search, product, cart, checkout, bought, left = range(8)
    moves, rewards = _empty(6, 3)
    moves[landing, :, [browse, search]] = [[0.7], [0.3]]
    moves[browse, :, [product, browse, search]] = [[0.6], [0.2], [0.2]]
    moves[search, :, [product, browse]] = [[0.7], [0.3]]
    for state, forward, chances in ((product, cart, (0.25, 0.5, 0.35)), (cart, checkout, (0.45, 0.75, 0.4))):
        moves[state, :, forward] = chances
        moves[state, :, browse] = 0.15
        moves[state, :, left] = 0.85 - np.array(chances)
    moves[checkout, :, [bought, browse]] = [[0.85], [0.15]]
    rewards[checkout] = np.array([30.0, 22.0, 27.0])[:, None]
    behavior = np.array([[0.5, 0.2, 0.3]] * 3 + [[0.3, 0.4, 0.3]] * 2 + [[0.3, 0.3, 0.4]])
    names = {"episodes": ("session",), "states": ("page",), "actions": ("offer",), "rewards": ("revenue",)}
    words, offers, starts = np.array(pages)[:, None], ("none", "discount", "banner"), np.eye(6)[0]
    return Domain("shop", names, words, offers, False, moves, rewards, 3.0, starts, behavior, 0.9, 500, LONGEST, 12)


def calls() -> Domain:
    """A call centre: urgency 1 to 6, who takes the call, the cost of each minute, an end when the call is over."""
    solves = np.array([0.45, 0.62, 0.82])
    moves, rewards = _empty(6, 3)
    for urgency in range(6):
        down = urgency - 1 if urgency > 0 else 6
        up = urgency + 1 if urgency < 5 else 7
        moves[urgency, :, down] = solves - 0.02 * urgency
        moves[urgency, :, up] = np.array([0.3, 0.15, 0.05])
        moves[urgency, :, urgency] = 1 - moves[urgency].sum(axis=1)
        rewards[urgency] = -(0.4 * (urgency + 1) + np.array([0.0, 0.3, 0.9]))[:, None]
    rewards[:, :, 7] -= 6.0
    behavior = np.array([[0.35, 0.4, 0.25]] * 3 + [[0.4, 0.3, 0.3]] * 3)
    names = {"episodes": ("call",), "states": ("urgency",), "actions": ("agent",), "rewards": ("cost",)}
    urgencies, agents, starts = np.arange(1, 7)[:, None], ("wait", "junior", "senior"), np.array([0, 0, 0.5, 0.5, 0, 0])
    return Domain("calls", names, urgencies, agents, True, moves, rewards, 0.2, starts, behavior, 1.0, 500, LONGEST, 14)


def machine() -> Domain:
    """A machine with two sensors: slow, fast or service each hour, recordings of 30 hours, some breakdowns."""
    moves, rewards = _empty(12, 3)
    # For each action: the chance that temperature and vibration rise, and that they fall.
    heats, cools, shakes, calms = (0.35, 0.7, 0.0), (0.3, 0.05, 0.85), (0.15, 0.4, 0.0), (0.05, 0.0, 0.85)
    for state in range(12):
        heat, shake = divmod(state, 3)
        for action in range(3):
            breaks = (0.1, 0.25, 0.02)[action] if heat == 3 else 0.0
            moves[state, action, 13] = breaks
            for up, chance in ((1, heats[action]), (-1, cools[action]), (0, 1 - heats[action] - cools[action])):
                for more, other in ((1, shakes[action]), (-1, calms[action]), (0, 1 - shakes[action] - calms[action])):
                    after = 3 * min(max(heat + up, 0), 3) + min(max(shake + more, 0), 2)
                    moves[state, action, after] += (1 - breaks) * chance * other
            rewards[state, action] = (1.0, 2.0, -0.5)[action] - 0.5 * shake
    behavior = np.array([[0.5, 0.3, 0.2]] * 6 + [[0.4, 0.3, 0.3]] * 6)
    names = {
        "episodes": ("run",),
        "states": ("temperature", "vibration"),
        "actions": ("mode",),
        "rewards": ("output",),
    }
    grid = np.array([(20.5 + 15.25 * heat, 0.4 + 0.35 * shake) for heat in range(4) for shake in range(3)])
    starts = np.zeros(12)
    starts[[0, 3]] = 0.6, 0.4
    modes = ("slow", "fast", "service")
    return Domain("machine", names, grid, modes, True, moves, rewards, 0.2, starts, behavior, 0.9, 300, 30, 14)


DOMAINS: dict[str, Callable[[], Domain]] = {
    "hospital": cache(hospital),
    "shop": cache(shop),
    "calls": cache(calls),
    "machine": cache(machine),
}


def _empty(states: int, actions: int) -> tuple[np.ndarray, np.ndarray]:
    """Transition probabilities and rewards of 0, with two columns for the kinds of end."""
    return np.zeros((states, actions, states + 2)), np.zeros((states, actions, states + 2))
