"""The default of version 0.1, kept as it was to be compared with: one kernel class out of several, doubly robust.

    ρ̂ = (1−γ) E_μ0[V] + E[τ (r + γV' − Q)],     at γ = 1:  E[τ (r + V' − Q)] / E[τ],

with τ and Q of GradientDICE's fits to the other folds. Candidates are random Fourier features of several bandwidths,
then a wider kernel along continuous actions, then more features at the best bandwidth and the next smaller one. Chosen
is the one with the smallest standard error among those whose held-out kernel Bellman loss is not significantly larger
than the smallest. The interval spans those of the candidates that are nearly as good, and is widened for misfit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import norm

from gradientdice.default.automatic import fit_evidence
from gradientdice.dice.saddle import Solver
from gradientdice.estimators.answer import Answer, Declares
from gradientdice.estimators.doubly_robust.cross_fit import FOLDS, cross_fit
from gradientdice.estimators.doubly_robust.drl import doubly_robust_answer
from gradientdice.estimators.needs import require_needs
from gradientdice.estimators.saddle.gradient_dice import GradientDICE
from gradientdice.functions.kernel import RandomFourier
from gradientdice.log.transitions import Transitions
from gradientdice.policies import Policy, SamplingPolicy
from gradientdice.problem.problem import Problem
from gradientdice.statistics.bellman import KernelBellmanLoss
from gradientdice.statistics.intervals import SkewInterval, independent_shares, standard_error
from gradientdice.statistics.shares import Samples
from gradientdice.statistics.small_samples import interval_shares

# The settings of version 0.1.
BANDWIDTHS = (0.25, 0.35, 0.7, 1.4)
WIDER = 3.0  # along continuous actions
NOISE = 2.0  # standard deviations of a loss's noise that do not count as a difference
NEARLY_LOSS, NEARLY_ERROR = 4.0, 3.0  # times the smallest loss, and the chosen one's error, for the interval's span
LACKING = 1.5  # the size allowed for what the ratio lacks, beside the target's mass on the rows


@dataclass(frozen=True, eq=False)
class Candidate:
    """A function class and what came of it.

    Attributes:
        functions: the class.
        loss: the held-out kernel Bellman loss, summed over folds.
        noise: the loss's standard deviation if the residuals were pure noise.
        answer: the doubly robust answer.
        error: the answer's standard error.
        mass: the share of the target's steps that lie on the rows.
    """

    functions: RandomFourier
    loss: float
    noise: float
    answer: Answer
    error: float
    mass: float

    def allowance(self, confidence: float) -> float:
        """How much the interval is widened on both sides for misfit."""
        loss, noise = self.loss / FOLDS, self.noise / FOLDS
        larger = max(loss, noise)
        if larger <= 0:
            return 0.0
        # A ratio that goes with a significant loss may miss most of the mass.
        doubt = max(1.0, loss / noise) if noise > 0 else math.inf
        believed = min(1.0, self.mass * doubt) if self.mass > 0 else 1.0
        return float(norm.ppf(0.5 + confidence / 2)) * LACKING * believed * math.sqrt(larger)


@dataclass(frozen=True, eq=False)
class PreviousSearch:
    """All candidates of one discount, and what follows from them."""

    candidates: tuple[Candidate, ...]

    @property
    def chosen(self) -> Candidate:
        """The most precise of the candidates whose loss is not significantly larger than the smallest."""
        return min(self._within(self._best.loss), key=lambda candidate: candidate.error)

    @property
    def spanned(self) -> list[Candidate]:
        """The candidates that the interval spans."""
        close = self._within(NEARLY_LOSS * max(self._best.loss, self._best.noise))
        return [c for c in close if c.error <= NEARLY_ERROR * self.chosen.error]

    def _within(self, loss: float) -> list[Candidate]:
        """Candidates whose loss is not significantly above this."""
        return [c for c in self.candidates if c.loss <= loss + NOISE * np.hypot(self._best.noise, c.noise)]

    @property
    def _best(self) -> Candidate:
        return min(self.candidates, key=lambda candidate: candidate.loss)


def previous_searches(problem: Problem, discounts: Sequence[float]) -> list[PreviousSearch]:
    """Tries the candidates and scores them, for each discount; they share the passes over the log."""
    data, policy = problem.data, problem.policy
    judge = KernelBellmanLoss(data, policy, problem.folds(FOLDS))
    tried: dict[RandomFourier, list[Candidate]] = {}

    def attempt(functions: RandomFourier) -> list[Candidate]:
        trial, found = problem.using(functions), []
        for fitted in cross_fit(trial, [GradientDICE(discount) for discount in discounts]):
            answer = doubly_robust_answer(trial, fitted)
            assert answer.influence is not None and answer.ratio is not None
            error = standard_error(independent_shares(answer.influence, data))
            mass = float(np.average(answer.ratio, weights=data.row_weights))
            found.append(Candidate(functions, *judge(fitted.scores), answer, error, mass))
        return found

    def best() -> list[RandomFourier]:
        """The functions of the smallest loss, for each discount."""
        columns = zip(*tried.values(), strict=True)
        return [min(column, key=lambda candidate: candidate.loss).functions for column in columns]

    moderate, sampled = _moderate(data, policy), isinstance(policy, SamplingPolicy)
    stages: list[Callable[[], Iterable[RandomFourier]]] = [
        lambda: [RandomFourier(moderate, bandwidth, problem.seed) for bandwidth in BANDWIDTHS],
        lambda: [replace(functions, action_stretch=WIDER) for functions in best() if sampled],
        lambda: [larger for functions in best() for larger in _larger(data, policy, functions)],
    ]
    for stage in stages:
        for functions in stage():
            if functions not in tried:
                tried[functions] = attempt(functions)
    return [PreviousSearch(tuple(column)) for column in zip(*tried.values(), strict=True)]


@dataclass(frozen=True, eq=False)
class PreviousDefault(Declares):
    """The answer of a search's chosen candidate.

    Attributes:
        discount: γ in [0, 1]; 1 is the average reward.
        search: at this discount.
        confidence: of the interval, which the room for misfit follows.
    """

    family = "default"
    uses_functions = False  # the search has found them

    discount: float
    search: PreviousSearch
    confidence: float

    def __repr__(self) -> str:
        return f"PreviousDefault(discount={self.discount:g})"

    def answer(self, problem: Problem, solver: Solver | None = None) -> Answer:
        """The answer of the chosen candidate, with its evidence."""
        require_needs(self, problem, solver)
        chosen = self.search.chosen
        evidence = fit_evidence(problem, self.discount, chosen.answer, chosen.loss, chosen.noise)
        evidence = replace(evidence, allowance=chosen.allowance(self.confidence))
        return replace(chosen.answer, evidence=evidence, functions=repr(chosen.functions), method=repr(self), notes=())


@dataclass(frozen=True, eq=False)
class SpanningInterval:
    """The interval of the influence values, widened to those of the candidates that are nearly as good.

    Attributes:
        problem: what was answered.
        search: whose candidates they are.
    """

    problem: Problem
    search: PreviousSearch

    def interval(self, value: float, samples: Samples, confidence: float, seed: int) -> tuple[float, float]:
        """(low, high)."""
        method = SkewInterval()
        low, high = method.interval(value, samples, confidence, seed)
        for candidate in self.search.spanned:
            assert candidate.answer.influence is not None
            shares = interval_shares(candidate.answer.influence, self.problem)
            other_low, other_high = method.interval(candidate.answer.value, shares, confidence, seed)
            low, high = min(low, other_low), max(high, other_high)
        return low, high


def _moderate(data: Transitions, policy: Policy) -> int:
    return int(np.clip(len(data) // 100, 25, 400)) // (1 if _blocks(policy) == 1 else 2)


def _larger(data: Transitions, policy: Policy, best: RandomFourier) -> list[RandomFourier]:
    """More features at the best bandwidth and at the next smaller one, as many as the data allow."""
    most = min(len(data) // (40 * _blocks(policy)), 1000 // _blocks(policy))
    if most < 1.5 * best.num_features:
        return []
    assert isinstance(best.bandwidth, float)
    finer = [bandwidth for bandwidth in BANDWIDTHS if bandwidth < best.bandwidth]
    return [replace(best, num_features=most, bandwidth=bandwidth) for bandwidth in (best.bandwidth, *finer[-1:])]


def _blocks(policy: Policy) -> int:
    """How many blocks of features there are: one for each discrete action."""
    return 1 if isinstance(policy, SamplingPolicy) else policy.num_actions or 1
