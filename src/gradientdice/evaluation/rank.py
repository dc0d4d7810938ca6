"""`rank`: which of several policies is the best, by how much, and how sure is that? One pass over what they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict, Unpack, overload

import numpy as np

from gradientdice.base.effort import Effort, require_effort
from gradientdice.base.errors import InputError
from gradientdice.base.progress import tracked
from gradientdice.default.search import Searching
from gradientdice.evaluation.baseline import AskedLog
from gradientdice.evaluation.curve import require_discounts
from gradientdice.evaluation.difference import Compared
from gradientdice.evaluation.estimate import Estimate
from gradientdice.evaluation.evaluate import evaluate_discounts
from gradientdice.evaluation.interval import Intervals
from gradientdice.evaluation.named import named
from gradientdice.evaluation.ranking import BEHAVIOR, DiscountRankings, Ranking, require_baseline
from gradientdice.functions import Functions
from gradientdice.log.scanning.log import ScannedLog
from gradientdice.log.transitions import Transitions
from gradientdice.policies import Policy
from gradientdice.problem.entrance import require_policy, require_types
from gradientdice.problem.problem import Problem
from gradientdice.statistics.intervals import require_confidence


class _Options(TypedDict, total=False):
    """The options of `rank` that do not change what it returns."""

    baseline: str
    functions: Functions | None
    confidence: float
    seed: int
    effort: Effort | str
    progress: bool | None
    checkpoint: str | Path | None


@overload
def rank(
    data: Transitions | ScannedLog, policies: Mapping[str, Policy], discount: float, **options: Unpack[_Options]
) -> Ranking: ...
@overload
def rank(
    data: Transitions | ScannedLog,
    policies: Mapping[str, Policy],
    discount: Sequence[float],
    **options: Unpack[_Options],
) -> DiscountRankings: ...
def rank(
    data: Transitions | ScannedLog,
    policies: Mapping[str, Policy],
    discount: float | Sequence[float],
    *,
    baseline: str = BEHAVIOR,
    functions: Functions | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    effort: Effort | str = Effort.NORMAL,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
) -> Ranking | DiscountRankings:
    """Which policy is the best?

    Every policy is evaluated by the default of `evaluate`. What depends on the log alone is done once: folds, features
    at the logged pairs, gram matrices, the learned model, tests of the log. With continuous states and several
    policies, each one is simulated for fewer steps than a single one would be.

    Args:
        data: the log, in memory or scanned (`scan`): each pass over it then serves all policies.
        policies: name -> policy.
        discount: γ; 1 is the average reward. With a list of them there is a ranking for each.
        baseline: what the policies are compared with: "behavior" is the policy that logged the data, or the name of
            one of the policies.
        functions: as for `evaluate`.
        confidence: of each interval, of all simultaneous intervals together, and of the set that contains the best.
        seed: for whatever is random.
        effort: "quick", "normal" or "thorough".
        progress: None shows a progress bar on a terminal once the work has taken two seconds, True from the start,
            False never.
        checkpoint: with a scanned log, a folder to which the passes over it write as they go, and from which they go
            on.

    Returns:
        The ranking: `.table` (best first), `.estimates` by name, `.differences`, `.best_set`. With several discounts a
        mapping from discount to ranking, with one long `.table`.

    Raises:
        InputError: if the input cannot be used; the message names the policy and says what would work.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp = gd.mdp.boyan_chain("continuing")
        >>> data = mdp.sample(20_000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
        >>> policies = {
        ...     f"{p:g}": gd.TabularPolicy(np.tile([p, 1 - p], (13, 1)))
        ...     for p in (0.1, 0.5, 0.9)
        ... }
        >>> ranking = gd.rank(data, policies, discount=0.9, baseline="0.5")
        >>> ranking.names[0], ranking.best_set
        ('0.1', ('0.1',))
    """
    checked = require_policies(data, policies)
    require_baseline(baseline, checked)
    several = isinstance(discount, (Sequence, np.ndarray))
    discounts = require_discounts(discount if several else [discount])
    first = next(iter(checked.values()))
    search, intervals = Searching(discounts[0]), Intervals(confidence=require_confidence(confidence))
    if isinstance(data, ScannedLog):
        from gradientdice.evaluation.scan.rank import rank_scanned, run_for
        from gradientdice.evaluation.scan.searched import fits_in_memory
        from gradientdice.problem.scan.asked import as_asked

        run = run_for(checkpoint, progress)
        asked = {
            name: as_asked(data, policy, functions, seed, run, require_effort(effort))
            for name, policy in checked.items()
        }
        if not fits_in_memory(asked[next(iter(asked))]):
            found = rank_scanned(asked, discounts, baseline, intervals)
            return DiscountRankings(found) if several else found[discounts[0]]
        data = data.sample
    else:
        refuse_checkpoint(checkpoint)
    with named(next(iter(checked))):
        problem = Problem(data, first, functions, seed, search, progress, require_effort(effort), sharers=len(checked))
    shared = AskedLog.of(problem)
    found = {
        name: _evaluated(shared, problem, name, policy, discounts, intervals)
        for name, policy in tracked("ranking policies", list(checked.items()), progress)
    }
    rankings = {}
    for number, own in enumerate(discounts):
        estimates = {name: each[number] for name, each in found.items()}
        rankings[own] = Ranking(estimates, baseline, _side(shared, estimates, baseline, own))
    return DiscountRankings(rankings) if several else rankings[discounts[0]]


def refuse_checkpoint(checkpoint: object) -> None:
    """Raise if there is a checkpoint for a log in memory."""
    if checkpoint is not None:
        raise InputError("checkpoint= is for passes over a scanned log here: leave it out, or scan the log.")


def require_policies(data: object, policies: object) -> dict[str, Policy]:
    """Policies by name, or an error that says which of them is none."""
    if not isinstance(policies, Mapping):
        raise InputError(f"policies must be a dict from names to policies, not {type(policies).__name__}.")
    if not policies:
        raise InputError("policies is empty: give at least one, as {'name': policy}.")
    for name, policy in policies.items():
        if not isinstance(name, str) or not name:
            raise InputError(f"The names of policies must be texts that are not empty, not {name!r:.60}.")
        if name == BEHAVIOR:
            raise InputError(f"No policy may be called {BEHAVIOR!r}: that is the name of the one that logged the data.")
        with named(name):
            require_policy(policy) if isinstance(data, ScannedLog) else require_types(data, policy)
    return dict(policies)


def _evaluated(
    asked: AskedLog, problem: Problem, name: str, policy: Policy, discounts: Sequence[float], intervals: Intervals
) -> list[Estimate]:
    """One policy at all discounts, with all that the log alone decides taken from the problem."""
    with named(name):
        estimates = evaluate_discounts(problem.with_policy(policy), discounts, intervals, asked=asked)
        for estimate in estimates:
            Compared.of(estimate)  # an error if it has no influence values
    return estimates


def _side(asked: AskedLog, estimates: Mapping[str, Estimate], baseline: str, discount: float) -> Compared:
    """The baseline's value."""
    if baseline != BEHAVIOR:
        return Compared.of(estimates[baseline])
    side = asked.behavior_side(discount).value
    if side is None:
        raise InputError(
            "The behaviour's own value is not known: below discount 1 it needs episodes in time order, or initial "
            "states. Give them, or the name of one of the policies as baseline."
        )
    return side
