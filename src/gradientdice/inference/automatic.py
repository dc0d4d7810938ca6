"""The default for continuous states: kernel features chosen without the truth, and a cross-fitted doubly robust answer.

Candidates differ in bandwidth, in number of features and, for continuous actions, in how wide the kernel is along the
action. First a ladder of bandwidths at a moderate number, then a wider action, then more features at the best of these
and at the next finer bandwidth: capacity must grow with the data and with the horizon. The held-out kernel Bellman loss
of a candidate's Q, with its noise, says which are plausible: not told apart from the best. Among those the answer with
the smallest standard error is chosen, since no bias can be seen in any of them.

The interval allows for what the features miss. It spans the intervals of all candidates that are nearly as good by
both, so that it widens where the answer hangs on the choice, and it is widened on both sides by twice the root of the
loss: a doubly robust answer is off by E[(τ − τ̂)(r + γV' − Q)], which is at most the root of the loss times the size,
in the loss's own kernel, of what τ̂ lacks.

Moments serve every discount, so that several discounts share each pass over the log.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np

from gradientdice.data.transitions import Transitions
from gradientdice.estimators import GradientDICE
from gradientdice.functions.kernel import RandomFourier
from gradientdice.functions.stream import LogDesign
from gradientdice.inference.doubly_robust import DoublyRobust, doubly_robust
from gradientdice.inference.folds import Folds, fold_fits, fold_moments, held_out
from gradientdice.inference.intervals import IntervalMethod, independent_shares, standard_error
from gradientdice.inference.selection import KernelBellmanLoss
from gradientdice.policies import Policy, SamplingPolicy
from gradientdice.solvers.closed_form import ClosedForm
from gradientdice.solvers.progress import progress_bar
from gradientdice.solvers.solution import Solution

FOLDS = 4
BANDWIDTHS = (0.25, 0.35, 0.7, 1.4)
WIDER = 3.0  # along continuous actions
# Kernel features are many and nearly collinear: directions below this share of the largest are noise.
RANK_TOLERANCE = 1e-7
# A loss within this many standard deviations of its noise from the best is not told apart from it.
NOISE = 2.0
# The interval spans candidates with at most this many times the best loss and the chosen one's standard error. (The
# range 2 to 10 gives much the same on the control problems of `reproduce continuous`; without it, that is with
# plausible candidates alone, the intervals are too short.)
NEARLY_LOSS, NEARLY_ERROR = 4.0, 3.0
# The size that is allowed to what the ratio lacks. On the control problems 1 covers in 96% of the logs, 2 in 98%; at
# discount 0.99, where bias matters most, 2 covers in all logs of CartPole and in 88% of pendulum's.
LACKING = 2.0


@dataclass(frozen=True, eq=False)
class Candidate:
    """A function class with its held-out loss and its answer."""

    functions: RandomFourier
    loss: float
    noise: float
    answer: DoublyRobust
    interval: tuple[float, float]
    error: float
    solution: Solution
    mean_ratio: float


@dataclass(frozen=True, eq=False)
class Automatic:
    """All candidates, and what follows from them."""

    candidates: tuple[Candidate, ...]

    @property
    def chosen(self) -> Candidate:
        """The most precise of the candidates whose loss is not told apart from the best."""
        return min(self._within(self._best.loss), key=lambda candidate: candidate.error)

    @property
    def spanned(self) -> list[Candidate]:
        """The candidates that the interval spans."""
        close = self._within(NEARLY_LOSS * max(self._best.loss, self._best.noise))
        return [c for c in close if c.error <= NEARLY_ERROR * self.chosen.error]

    def _within(self, loss: float) -> list[Candidate]:
        """Candidates whose loss is not seen to be above this."""
        return [c for c in self.candidates if c.loss <= loss + NOISE * np.hypot(self._best.noise, c.noise)]

    @property
    def _best(self) -> Candidate:
        return min(self.candidates, key=lambda candidate: candidate.loss)

    @property
    def interval(self) -> tuple[float, float]:
        """From the lowest to the highest end among those, and the allowance beyond."""
        low, high = min(c.interval[0] for c in self.spanned), max(c.interval[1] for c in self.spanned)
        return low - self.allowance, high + self.allowance

    @property
    def allowance(self) -> float:
        """How much the interval is widened on both sides for what the chosen features miss."""
        return LACKING * math.sqrt(max(self.chosen.loss, 0.0))


def automatic(
    data: Transitions,
    policy: Policy,
    discounts: Sequence[float],
    method: IntervalMethod,
    confidence: float,
    seed: int,
    *,
    progress: bool = False,
) -> list[Automatic]:
    """Tries the candidates, picks by held-out loss, and answers, for each discount."""
    folds = Folds.create(data, FOLDS, seed)
    judge = KernelBellmanLoss(data, policy, folds)
    estimators = [GradientDICE(discount) for discount in discounts]
    tried: dict[RandomFourier, list[Candidate]] = {}

    def attempt(functions: RandomFourier) -> None:
        log = LogDesign(data, policy, functions, seed=seed)
        fits = fold_fits(fold_moments(log, folds), estimators, ClosedForm(RANK_TOLERANCE))
        tried[functions] = []
        for own, scores in zip(fits, held_out(log, folds, fits), strict=True):
            answer = doubly_robust(log, own, scores)
            samples = independent_shares(answer.shares, data)
            worst = max(own, key=lambda fit: fit.solution.stats["condition_number"])
            interval, error = method.interval(answer.value, samples, confidence, seed), standard_error(samples)
            mean_ratio = float(np.mean([fit.mean_ratio for fit in own]))
            tried[functions].append(
                Candidate(functions, *judge(scores), answer, interval, error, worst.solution, mean_ratio)
            )

    def best() -> list[RandomFourier]:
        """The functions of the smallest loss, for each discount."""
        columns = zip(*tried.values(), strict=True)
        return [min(column, key=lambda candidate: candidate.loss).functions for column in columns]

    moderate, sampled = _moderate(data, policy), isinstance(policy, SamplingPolicy)
    stages: list[Callable[[], Iterable[RandomFourier]]] = [
        lambda: [RandomFourier(moderate, bandwidth, seed) for bandwidth in BANDWIDTHS],
        lambda: [replace(functions, action_stretch=WIDER) for functions in best() if sampled],
        lambda: [larger for functions in best() for larger in _larger(data, policy, functions)],
    ]
    with (
        progress_bar("feature candidates", len(BANDWIDTHS) + sampled + 2)
        if progress
        else nullcontext(lambda amount: None) as advance
    ):
        for stage in stages:
            for functions in stage():
                if functions not in tried:
                    attempt(functions)
                    advance(1)
    return [Automatic(tuple(column)) for column in zip(*tried.values(), strict=True)]


def _moderate(data: Transitions, policy: Policy) -> int:
    return int(np.clip(len(data) // 100, 25, 400)) // (1 if _blocks(policy) == 1 else 2)


def _larger(data: Transitions, policy: Policy, best: RandomFourier) -> list[RandomFourier]:
    """More features at the best bandwidth and at the next finer one, as far as the data carry them."""
    most = min(len(data) // (40 * _blocks(policy)), 1000 // _blocks(policy))
    if most < 1.5 * best.num_features:
        return []
    finer = [bandwidth for bandwidth in BANDWIDTHS if bandwidth < best.bandwidth]
    return [replace(best, num_features=most, bandwidth=bandwidth) for bandwidth in (best.bandwidth, *finer[-1:])]


def _blocks(policy: Policy) -> int:
    """How many blocks of features there are: one for each discrete action."""
    return 1 if isinstance(policy, SamplingPolicy) else policy.num_actions or 1
