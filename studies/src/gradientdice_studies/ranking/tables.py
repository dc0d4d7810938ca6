"""The tables: a random MDP and a chain to develop on, four rooms and a hospital for the report.

The behaviour chooses with a preference of its own. The candidates are ten policies around it: it itself, small steps
towards a better and towards a worse policy, uniform choices, and four that are better in a random half of the states
each: these are close to one another, so that it is not plain which is the best. Better and worse are softened optima
of the reward and of its opposite. Values are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradientdice.log.transitions import Transitions
from gradientdice.mdp import TabularMDP, four_rooms
from gradientdice.mdp.benchmarks.grids import four_rooms_policies
from gradientdice.mdp.planning import mixed_with_uniform, optimal_q, softmax_policy
from gradientdice.policies import TabularPolicy
from gradientdice_studies.ranking.case import BEHAVIOR, COPY, Case, Half, Worth

# So far the candidates go from the behaviour towards the better and the worse policy.
BETTER, WORSE = (0.1, 0.25), (0.15, 0.4)
PARTS = ("first", "second", "third", "fourth")


@dataclass(frozen=True, eq=False)
class Table:
    """How a table is logged.

    Attributes:
        mdp: the table; states from `terminal` on end an episode.
        behavior: (S, A) the policy that logs.
        episodes: how many are logged.
        limit: after so many steps an episode is cut.
        terminal: the first state that ends an episode; None if none does.
        noise: the standard deviation of rewards around their means.
    """

    mdp: TabularMDP
    behavior: Float[np.ndarray, "S A"]
    episodes: int
    limit: int
    terminal: int | None = None
    noise: float = 0.0

    def log(self, seed: int) -> Transitions:
        """One log."""
        rng = np.random.default_rng([14, seed])
        return self.mdp.rollout(self.behavior, self.episodes, self.limit, rng, terminal=self.terminal, noise=self.noise)

    def case(self, name: str, half: Half, discount: float) -> Case:
        """The table with its ten candidates and their exact values."""
        chosen = {name: TabularPolicy(policy) for name, policy in candidates(self.mdp, self.behavior, discount).items()}
        no_better = (COPY, *(f"worse {share:.0%}" for share in WORSE))

        def worth() -> dict[str, Worth]:
            policies = {**chosen, BEHAVIOR: TabularPolicy(self.behavior)}
            return {name: Worth(self.mdp.value(policy, discount)) for name, policy in policies.items()}

        return Case(name, "table", half, discount, dict(chosen), no_better, self.log, worth)


def candidates(
    mdp: TabularMDP, behavior: Float[np.ndarray, "S A"], discount: float
) -> dict[str, Float[np.ndarray, "S A"]]:
    """Ten policies around the behaviour."""
    better = _softened(optimal_q(mdp, discount))
    rng = np.random.default_rng(14)
    parts = {f"{name} part": rng.permutation(mdp.num_states) % 2 == 0 for name in PARTS}
    worse = _softened(optimal_q(TabularMDP(mdp.transition, -mdp.reward, mdp.initial), discount))
    return {
        COPY: behavior,
        **{f"better {share:.0%}": share * better + (1 - share) * behavior for share in BETTER},
        **{f"worse {share:.0%}": share * worse + (1 - share) * behavior for share in WORSE},
        "uniform": np.full_like(behavior, 1 / behavior.shape[1]),
        **{name: np.where(own[:, None], better, behavior) for name, own in parts.items()},
    }


def _softened(q: Float[np.ndarray, "S A"]) -> Float[np.ndarray, "S A"]:
    """Softmax at the scale on which actions differ, so that no action becomes impossible."""
    return softmax_policy(q, max(float(np.std(q, axis=1).mean()), 1e-12))


def _random() -> Case:
    """Twelve states that all lead to each other; short episodes cut off 7% of the discounted steps."""
    rng = np.random.default_rng(5)
    mdp = TabularMDP(
        rng.dirichlet(np.full(12, 0.3), size=(12, 3)), rng.normal(size=(12, 3)), rng.dirichlet(np.ones(12))
    )
    behavior = mixed_with_uniform(rng.dirichlet(np.ones(3), size=12), 0.6)
    return Table(mdp, behavior, episodes=100, limit=25, noise=2.0).case("random", "develop", 0.9)


def _chain() -> Case:
    """Twelve places between two ends: the near one pays little, the far one much; staying costs least.

    Actions are back, stay and forth; each succeeds four times in five.
    """
    places = 12
    transition, reward = np.zeros((places + 1, 3, places + 1)), np.zeros((places + 1, 3))
    for place in range(places):
        for action, step in enumerate((-1, 0, 1)):
            to = place + step
            there = places if to in (-1, places) else to
            transition[place, action, there] += 0.8
            transition[place, action, place] += 0.2
            paid = {-1: 1.0, places: 6.0}.get(to, 0.0)
            reward[place, action] = 0.8 * paid - (0.02 if step == 0 else 0.05)
    transition[places, :, places], reward[places] = 1.0, 0.0
    initial = np.zeros(places + 1)
    initial[2:6] = 0.25
    behavior = np.tile([0.3, 0.2, 0.5], (places + 1, 1))
    table = Table(
        TabularMDP(transition, reward, initial), behavior, episodes=100, limit=100, terminal=places, noise=1.0
    )
    return table.case("chain", "develop", 0.97)


def _rooms() -> Case:
    """Four rooms, 104 squares; the behaviour takes a random step half of the time."""
    mdp = four_rooms()
    _, behavior = four_rooms_policies(mdp)
    return Table(mdp, behavior, episodes=60, limit=100, noise=0.1).case("four rooms", "report", 0.95)


SEVERITIES, TREATMENTS = 4, 3
# How much fluids and vasopressors help, at normal and at high lactate.
HELPS = np.array([[0.0, 0.2, 0.05], [0.0, 0.15, 0.3]])
# How probably lactate is high tomorrow.
STAYS_HIGH, BECOMES_HIGH = 0.7, 0.2


def _hospital() -> Case:
    """Patients of four severities, with normal or high lactate; they go home or die, and doctors differ from both.

    state = 2 · (severity − 1) + (lactate is high). Going home pays 1, death −1, and both end the episode.
    """
    end = 2 * SEVERITIES
    transition, reward = np.zeros((end + 1, TREATMENTS, end + 1)), np.zeros((end + 1, TREATMENTS))
    for state in range(end):
        severity, high = divmod(state, 2)
        tomorrow = STAYS_HIGH if high else BECOMES_HIGH
        for treatment, help in enumerate(HELPS[high]):
            recovers, lasts = 0.25 + help, 0.5 - 0.7 * help
            for to, chance in ((severity - 1, recovers), (severity, lasts), (severity + 1, 1 - recovers - lasts)):
                if 0 <= to < SEVERITIES:
                    transition[state, treatment, 2 * to] += chance * (1 - tomorrow)
                    transition[state, treatment, 2 * to + 1] += chance * tomorrow
                else:
                    transition[state, treatment, end] += chance
                    reward[state, treatment] += chance if to < 0 else -chance
    transition[end, :, end] = 1.0
    initial = np.zeros(end + 1)
    initial[: end - 2] = 1 / (end - 2)
    doctors = np.array([[0.6, 0.3, 0.1]] + [[0.5, 0.35, 0.15], [0.3, 0.4, 0.3]] * SEVERITIES)[: end + 1]
    mdp = TabularMDP(transition, reward, initial)
    return Table(mdp, doctors, episodes=400, limit=30, terminal=end).case("hospital", "report", 0.95)


TABLES = {"random": _random, "chain": _chain, "four rooms": _rooms, "hospital": _hospital}
