"""The default for continuous states: kernel features chosen without the truth, and a cross-fitted doubly robust answer.

Candidates differ in bandwidth and in number of features. First a ladder of bandwidths at a moderate number, then more
features at the best bandwidth and the next finer one: capacity must grow with the data and with the horizon. The
held-out kernel Bellman loss of a candidate's Q, with its noise, says which are plausible: not told apart from the
best. Among those the answer with the smallest standard error is chosen, since no bias can be seen in any of them. The
interval spans the intervals of all plausible candidates that are about as precise, so that it widens where the answer
hangs on the choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np

from gradientdice.data.transitions import Transitions
from gradientdice.estimators import GradientDICE
from gradientdice.functions.kernel import RandomFourier
from gradientdice.functions.stream import LogDesign
from gradientdice.inference.doubly_robust import DoublyRobust, doubly_robust
from gradientdice.inference.folds import Folds, fold_fits, held_out
from gradientdice.inference.intervals import IntervalMethod, independent_shares, standard_error
from gradientdice.inference.selection import KernelBellmanLoss
from gradientdice.policies import Policy, SamplingPolicy
from gradientdice.solvers.closed_form import ClosedForm
from gradientdice.solvers.progress import progress_bar
from gradientdice.solvers.solution import Solution

FOLDS = 4
BANDWIDTHS = (0.2, 0.35, 0.7, 1.4)
# Kernel features are many and nearly collinear: directions below this share of the largest are noise.
RANK_TOLERANCE = 1e-7
# A loss within this many standard deviations of its noise from the best is not told apart from it.
NOISE = 2.0
# Plausible candidates up to this many times as imprecise as the chosen one widen the interval.
PRECISE = 1.5


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
    def plausible(self) -> list[Candidate]:
        """Candidates whose loss is not told apart from the best, the most precise first."""
        best = min(self.candidates, key=lambda candidate: candidate.loss)
        close = [c for c in self.candidates if c.loss <= best.loss + NOISE * np.hypot(best.noise, c.noise)]
        return sorted(close, key=lambda candidate: candidate.error)

    @property
    def chosen(self) -> Candidate:
        """The most precise of the plausible candidates."""
        return self.plausible[0]

    @property
    def spanned(self) -> list[Candidate]:
        """The plausible candidates that the interval spans."""
        return [c for c in self.plausible if c.error <= PRECISE * self.chosen.error]

    @property
    def interval(self) -> tuple[float, float]:
        """From the lowest to the highest end among those."""
        return min(c.interval[0] for c in self.spanned), max(c.interval[1] for c in self.spanned)


def automatic(
    data: Transitions,
    policy: Policy,
    discount: float,
    method: IntervalMethod,
    confidence: float,
    seed: int,
    *,
    progress: bool = False,
) -> Automatic:
    """Tries the candidates, picks by held-out loss, and answers."""
    folds = Folds.create(data, FOLDS, seed)
    judge = KernelBellmanLoss(data, policy, folds)

    def attempt(functions: RandomFourier) -> Candidate:
        log = LogDesign(data, policy, functions, seed=seed)
        fits = fold_fits(log, folds, GradientDICE(discount), ClosedForm(RANK_TOLERANCE))
        scores = held_out(log, folds, fits)
        answer = doubly_robust(log, fits, scores)
        samples = independent_shares(answer.shares, data)
        worst = max(fits, key=lambda fit: fit.solution.stats["condition_number"])
        interval, error = method.interval(answer.value, samples, confidence, seed), standard_error(samples)
        mean_ratio = float(np.mean([fit.mean_ratio for fit in fits]))
        return Candidate(functions, *judge(scores), answer, interval, error, worst.solution, mean_ratio)

    moderate = _moderate(data, policy)
    with (
        progress_bar("feature candidates", len(BANDWIDTHS) + 2)
        if progress
        else nullcontext(lambda amount: None) as advance
    ):
        candidates = []
        for bandwidth in BANDWIDTHS:
            candidates.append(attempt(RandomFourier(moderate, bandwidth, seed)))
            advance(1)
        best = min(candidates, key=lambda candidate: candidate.loss)
        for functions in _larger(data, policy, best.functions):
            candidates.append(attempt(functions))
            advance(1)
    return Automatic(tuple(candidates))


def _moderate(data: Transitions, policy: Policy) -> int:
    return int(np.clip(len(data) // 100, 25, 400)) // (1 if _blocks(policy) == 1 else 2)


def _larger(data: Transitions, policy: Policy, best: RandomFourier) -> Iterator[RandomFourier]:
    """More features at the best bandwidth and at the next finer one, as far as the data carry them."""
    most = min(len(data) // (40 * _blocks(policy)), 1000 // _blocks(policy))
    if most < 1.5 * best.num_features:
        return
    finer = [bandwidth for bandwidth in BANDWIDTHS if bandwidth < best.bandwidth]
    for bandwidth in (best.bandwidth, *finer[-1:]):
        yield RandomFourier(most, bandwidth, best.seed)


def _blocks(policy: Policy) -> int:
    """How many blocks of features there are: one for each discrete action."""
    return 1 if isinstance(policy, SamplingPolicy) else policy.num_actions or 1
