"""`posterior`: from a log and one or several policies to draws of their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, overload

import numpy as np
from jaxtyping import Float

from gradientdice.base.effort import Effort, require_effort
from gradientdice.base.errors import InputError, require_choice, require_count, require_number
from gradientdice.base.progress import tracked
from gradientdice.default.automatic import Automatic
from gradientdice.default.search import Searching
from gradientdice.evaluation.baseline import AskedLog
from gradientdice.evaluation.evaluate import evaluate_problem
from gradientdice.evaluation.interval import Intervals
from gradientdice.evaluation.posterior.result import Posterior, PosteriorRanking
from gradientdice.functions import MLP, Functions
from gradientdice.log.transitions import Transitions
from gradientdice.policies import DiscretePolicy, Policy, TabularPolicy
from gradientdice.problem.entrance import explained_starts
from gradientdice.problem.problem import Problem
from gradientdice.statistics.posterior.dirichlet import DirichletModel
from gradientdice.statistics.posterior.features import FeatureDraws
from gradientdice.statistics.posterior.linearised import LinearisedDraws
from gradientdice.statistics.posterior.table import TableDraws
from gradientdice.statistics.posterior.units import Drawn, GammaWeights, WeightedCells
from gradientdice.statistics.small_samples import interval_shares

# A batch of draws has no more numbers than this in one array: some tens of megabytes.
BATCH_NUMBERS = 4_000_000
# A share of so many draws is known to a tenth of a percent; more would take hours and change nothing.
MOST_DRAWS = 1_000_000
# Solving each of 4,000 draws takes some ten seconds at most up to here: states of a table; units × features², the
# numbers that each draw's moments are a sum of.
MOST_STATES = 300
MOST_PRODUCT = 1.2e7


class _Draws(Protocol):
    """A policy's value under any weights."""

    def values(self, drawn: Drawn) -> Float[np.ndarray, " b"]:
        """ρ of each draw."""
        ...


@dataclass(frozen=True, eq=False)
class _Settings:
    """What was asked for."""

    discount: float
    draws: int
    prior: float
    seed: int


@overload
def posterior(
    data: Transitions,
    policy: Policy,
    *,
    discount: float,
    model: str = "bootstrap",
    functions: Functions | None = None,
    draws: int = 4000,
    prior: float = 1.0,
    seed: int = 0,
    effort: Effort | str = Effort.NORMAL,
) -> Posterior: ...


@overload
def posterior(
    data: Transitions,
    policy: Mapping[str, Policy],
    *,
    discount: float,
    model: str = "bootstrap",
    functions: Functions | None = None,
    draws: int = 4000,
    prior: float = 1.0,
    seed: int = 0,
    effort: Effort | str = Effort.NORMAL,
) -> PosteriorRanking: ...


def posterior(
    data: Transitions,
    policy: Policy | Mapping[str, Policy],
    *,
    discount: float,
    model: str = "bootstrap",
    functions: Functions | None = None,
    draws: int = 4000,
    prior: float = 1.0,
    seed: int = 0,
    effort: Effort | str = Effort.NORMAL,
) -> Posterior | PosteriorRanking:
    """What the log leaves open about a policy's value, as draws.

    The Bayesian bootstrap weights the log's independent units (episodes; rows where there are none; initial states that
    are given) by a Dirichlet(1, …, 1) and solves again: exactly for tables and for given features as far as that takes
    seconds, else to first order, by influence values. The Dirichlet model is for tables: it has a prior for what was
    seldom or never logged. `docs/posterior.md` says what the draws mean.

    Args:
        data: the log.
        policy: the policy, or several by name, whose draws then go together: how likely each is the best follows.
        discount: γ; 1 is the average reward.
        model: "bootstrap", or "dirichlet" for the conjugate model of a table.
        functions: the function class; by default as in `evaluate`.
        draws: how many.
        prior: how many observations the Dirichlet model's prior counts as, for each pair and for the starts.
        seed: for the draws.
        effort: as in `evaluate`, where features are searched for.

    Returns:
        A `Posterior`, or a `PosteriorRanking` of several policies.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp = gd.mdp.boyan_chain("continuing")
        >>> data = mdp.sample(2000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
        >>> policies = {
        ...     name: gd.TabularPolicy(np.tile([p, 1 - p], (13, 1)))
        ...     for name, p in [("a", 0.1), ("b", 0.9)]
        ... }
        >>> found = gd.posterior(data, policies, discount=1.0, draws=500)
        >>> low, high = found["a"].interval()
        >>> bool(low < mdp.value(policies["a"], 1.0) < high)
        True
        >>> max(found.probability_best, key=found.probability_best.get)
        'a'
    """
    settings = _Settings(
        require_number("discount", discount, low=0, high=1),
        require_count("draws", draws, low=100, high=MOST_DRAWS),
        require_number("prior", prior, low=0, open_low=True),
        require_count("seed", seed, low=0),
    )
    require_choice("model", model, "bootstrap", "dirichlet")
    policies = _named(policy)
    problems = {
        name: Problem(data, own, functions, seed, Searching(discount), effort=require_effort(effort))
        for name, own in policies.items()
    }
    with explained_starts(data, next(iter(policies.values()))):
        make = _dirichlet if model == "dirichlet" else _bootstrap
        found = PosteriorRanking(make(problems, settings))
    return found if isinstance(policy, Mapping) else found["policy"]


def _named(policy: Any) -> dict[str, Policy]:
    if not isinstance(policy, Mapping):
        return {"policy": policy}
    if not policy:
        raise InputError("posterior needs at least one policy: give a policy, or {name: policy, …}.")
    for name in policy:
        if not isinstance(name, str) or not name:
            raise InputError(f"The names of policies must be texts that are not empty, not {name!r:.60}.")
    return dict(policy)


def _bootstrap(problems: dict[str, Problem], settings: _Settings) -> dict[str, Posterior]:
    """The Bayesian bootstrap: one family of draws for all policies, so that they share the weights."""
    units = next(iter(problems.values())).data
    if units.units.count < 2:
        raise InputError(
            "The Bayesian bootstrap weights independent units, and the log has one row or one episode: give more, or "
            'model="dirichlet" for a table.'
        )
    makers = (_table_draws, _feature_draws, _linearised_draws)
    ready, weights, model = next(found for make in makers if (found := make(problems, settings.discount)) is not None)
    size = max(1, BATCH_NUMBERS // max(len(weights.rows), *(_size(own) for own in ready.values())))
    rng = np.random.default_rng(settings.seed)
    values = _batches(settings.draws, size, lambda count: _drawn(ready, weights.draw(count, rng)))
    which = "rows" if units.episodes is None else "episodes"
    note = f"weights: Dirichlet(1, …, 1) over {units.units.count:,} independent {which}"
    return _posteriors(problems, values, settings.discount, model, note)


def _table_draws(problems: dict[str, Problem], discount: float) -> tuple[dict[str, _Draws], GammaWeights, str] | None:
    """Exact draws of a table; None if it is none, or large."""
    if any(problem.support is None for problem in problems.values()):
        return None
    first = next(iter(problems.values()))
    assert first.support is not None
    if len(first.support.table.states) > MOST_STATES:
        return None
    for problem in problems.values():
        problem.tabular_solution(discount)  # refuses what has no answer, such as several closed sets at discount 1
    cells = WeightedCells.of(first.data)
    ready: dict[str, _Draws] = {name: TableDraws.of(problem, discount, cells) for name, problem in problems.items()}
    return ready, cells.weights, "Bayesian bootstrap, each draw solved exactly"


def _feature_draws(problems: dict[str, Problem], discount: float) -> tuple[dict[str, _Draws], GammaWeights, str] | None:
    """Exact draws with given features; None if they are searched for, networks, or too many for the units."""
    for problem in problems.values():
        if problem.functions is None or isinstance(problem.functions, MLP):
            return None
        if problem.data.units.count * problem.rows.width**2 > MOST_PRODUCT:
            return None
    ready = {name: FeatureDraws.of(problem, discount) for name, problem in problems.items()}
    first = next(iter(ready.values()))
    return dict(ready), first.weights, "Bayesian bootstrap, each draw solved exactly"


def _linearised_draws(problems: dict[str, Problem], discount: float) -> tuple[dict[str, _Draws], GammaWeights, str]:
    """First-order draws of whatever the default answers."""
    ready, widest = {}, None
    for name, problem in problems.items():
        answer = Automatic(discount).answer(problem)
        if answer.influence is None:
            raise InputError("A posterior needs influence values, and there are none here: give other functions.")
        ready[name] = LinearisedDraws(answer.value, interval_shares(answer.influence, problem))
        own = ready[name].weights
        # Starts that are all alike for one policy may differ for another.
        widest = own if widest is None or widest.starts is None else widest
    assert widest is not None
    return ready, widest, "Bayesian bootstrap, to first order (influence values)"


def _dirichlet(problems: dict[str, Problem], settings: _Settings) -> dict[str, Posterior]:
    """The conjugate model of a table."""
    policies: dict[str, TabularPolicy | DiscretePolicy] = {}
    for name, problem in problems.items():
        if problem.support is None or not isinstance(problem.policy, (TabularPolicy, DiscretePolicy)):
            raise InputError(
                "The Dirichlet model is for tables: states and actions that are few whole numbers, and a TabularPolicy "
                'or DiscretePolicy. Use model="bootstrap" for anything else.'
            )
        policies[name] = problem.policy
    first = next(iter(policies.values()))
    data = next(iter(problems.values())).data
    model = DirichletModel.of(data, first.num_actions, settings.prior)
    at_states = [policy.probabilities_at(model.states) for policy in policies.values()]
    rng = np.random.default_rng(settings.seed)

    def batch(count: int) -> np.ndarray:
        drawn = model.draw(count, rng)
        return np.column_stack([drawn.values(own, settings.discount) for own in at_states])

    values = _batches(settings.draws, max(1, BATCH_NUMBERS // model.steps.size), batch)
    note = (
        f"prior: {settings.prior:g} observation(s) for each pair, spread evenly over the {model.steps.shape[1]} "
        f"outcomes that the log shows; {model.rewards.note}"
    )
    return _posteriors(problems, values, settings.discount, "Dirichlet model of a table", note)


def _posteriors(
    problems: dict[str, Problem], values: Float[np.ndarray, "d P"], discount: float, model: str, note: str
) -> dict[str, Posterior]:
    """Each policy's draws beside the value of the log itself, with the verdict on that value."""
    found, asked = {}, AskedLog.of(next(iter(problems.values())))
    for number, (name, problem) in enumerate(problems.items()):
        estimate = evaluate_problem(problem, Automatic(discount), Intervals(), asked=asked)
        # Draws are not cut to what the rewards allow, and neither is the value that they are around.
        value = estimate.value if estimate.uncut_value is None else estimate.uncut_value
        doubts = estimate.verdict, tuple(estimate.reasons)
        found[name] = Posterior(values[:, number], value, discount, model, (note,), *doubts)
    return found


def _drawn(ready: dict[str, _Draws], weights: Drawn) -> np.ndarray:
    return np.column_stack([own.values(weights) for own in ready.values()])


def _batches(draws: int, size: int, make: Callable[[int], np.ndarray]) -> Float[np.ndarray, "d P"]:
    """All draws, so many at a time."""
    counts = [min(size, draws - done) for done in range(0, draws, size)]
    return np.concatenate([make(count) for count in tracked("drawing", counts, None)])


def _size(own: _Draws) -> int:
    """How many numbers one draw of a policy's system has."""
    if isinstance(own, TableDraws):
        return own.size
    return own.bellman.shape[1] if isinstance(own, FeatureDraws) else 1
