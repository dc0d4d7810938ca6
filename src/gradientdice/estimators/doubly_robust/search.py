"""The search for functions on continuous states: kernel features chosen without the truth.

Candidates differ in bandwidth, in number of features and, for continuous actions, in how wide the kernel is along the
action. First come several bandwidths at a moderate number of features, then a wider kernel along the action, then more
features at the best of these and at the next smaller bandwidth: capacity must grow with the data and with the horizon.
Each candidate has a cross-fitted doubly robust answer. A candidate is plausible if the held-out kernel Bellman loss of
its Q is not significantly larger than the smallest. Of the plausible ones, that with the smallest standard error is
chosen.

The interval allows for misfit: it spans the intervals of all candidates that are nearly as good in both respects, and
it is widened on both sides by what the chosen one's loss allows for (`allowance.py`).

Moments serve every discount, so that several discounts share each pass over the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gradientdice.data.transitions import Transitions
from gradientdice.estimators.answer import Answer
from gradientdice.estimators.doubly_robust.allowance import misfit_allowance
from gradientdice.estimators.doubly_robust.cross_fit import FOLDS, cross_fit
from gradientdice.estimators.doubly_robust.drl import doubly_robust_answer
from gradientdice.estimators.saddle.gradient_dice import GradientDICE
from gradientdice.functions.kernel import RandomFourier
from gradientdice.inference.bellman import KernelBellmanLoss
from gradientdice.inference.intervals import independent_shares, standard_error
from gradientdice.policies import Policy, SamplingPolicy
from gradientdice.problem.problem import Problem
from gradientdice.progress import working

BANDWIDTHS = (0.25, 0.35, 0.7, 1.4)
WIDER = 3.0  # along continuous actions
# A loss within this many standard deviations of its noise from the smallest is not significantly larger.
NOISE = 2.0
# The interval spans candidates with at most this many times the smallest loss and the chosen one's standard error. (The
# range 2 to 10 gives much the same on the control problems of `reproduce continuous`; without it, that is with
# plausible candidates alone, the intervals are too short.)
NEARLY_LOSS, NEARLY_ERROR = 4.0, 3.0


@dataclass(frozen=True, eq=False)
class Candidate:
    """A function class and what came of it.

    Attributes:
        functions: the class.
        loss: the held-out kernel Bellman loss, summed over folds.
        noise: the loss's standard deviation if the residuals were pure noise.
        answer: the doubly robust answer.
        error: the answer's standard error.
        mass: the share of the target's steps that lie on the rows; the rest come after an episode's end.
    """

    functions: RandomFourier
    loss: float
    noise: float
    answer: Answer
    error: float
    mass: float


@dataclass(frozen=True, eq=False)
class FunctionSearch:
    """All candidates, and what follows from them."""

    candidates: tuple[Candidate, ...]

    @property
    def functions(self) -> RandomFourier:
        """The functions chosen."""
        return self.chosen.functions

    @property
    def chosen(self) -> Candidate:
        """The most precise of the candidates whose loss is not significantly larger than the smallest."""
        return min(self._within(self._best.loss), key=lambda candidate: candidate.error)

    @property
    def spanned(self) -> list[Candidate]:
        """The candidates that the interval spans."""
        close = self._within(NEARLY_LOSS * max(self._best.loss, self._best.noise))
        return [c for c in close if c.error <= NEARLY_ERROR * self.chosen.error]

    def allowance(self, confidence: float) -> float:
        """How much the interval is widened on both sides for the misfit of the chosen features."""
        chosen = self.chosen
        return misfit_allowance(chosen.loss / FOLDS, chosen.noise / FOLDS, chosen.mass, confidence)

    def notes(self, confidence: float) -> tuple[str, ...]:
        """What the reader of an answer with the chosen functions and an interval of this confidence should know."""
        spanned = self.spanned
        notes = [
            f"features chosen among {len(self.candidates)} candidates by held-out kernel Bellman loss and precision; "
            f"the interval spans the {len(spanned)} that are nearly as good"
        ]
        values = [candidate.answer.value for candidate in spanned]
        if len(values) > 1:
            notes.append(f"their answers range from {min(values):.6g} to {max(values):.6g}")
        notes.append(
            f"the interval is widened by {self.allowance(confidence):.2g} on both sides for the features' misfit"
        )
        return tuple(notes)

    def _within(self, loss: float) -> list[Candidate]:
        """Candidates whose loss is not significantly above this."""
        return [c for c in self.candidates if c.loss <= loss + NOISE * np.hypot(self._best.noise, c.noise)]

    @property
    def _best(self) -> Candidate:
        return min(self.candidates, key=lambda candidate: candidate.loss)


def searching(discount: float) -> Callable[[Problem], FunctionSearch]:
    """A search at one discount, for `Problem`."""
    return lambda problem: search_functions(problem, [discount])[0]


def search_functions(problem: Problem, discounts: Sequence[float]) -> list[FunctionSearch]:
    """Tries the candidates and scores them, for each discount."""
    data, policy, seed = problem.data, problem.policy, problem.seed
    judge = KernelBellmanLoss(data, policy, problem.folds(FOLDS))
    estimators = [GradientDICE(discount) for discount in discounts]
    tried: dict[RandomFourier, list[Candidate]] = {}

    def attempt(functions: RandomFourier) -> None:
        trial = problem.using(functions)
        tried[functions] = []
        for fitted in cross_fit(trial, estimators):
            answer = doubly_robust_answer(trial, fitted)
            assert answer.influence is not None and answer.ratio is not None
            error = standard_error(independent_shares(answer.influence, data))
            mass = float(np.average(answer.ratio, weights=data.row_weights))
            tried[functions].append(Candidate(functions, *judge(fitted.scores), answer, error, mass))

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
    with working("choosing features", len(BANDWIDTHS) + sampled + 2, problem.progress) as advance:
        for stage in stages:
            for functions in stage():
                if functions not in tried:
                    attempt(functions)
                    advance(1)
    return [FunctionSearch(tuple(column)) for column in zip(*tried.values(), strict=True)]


def _moderate(data: Transitions, policy: Policy) -> int:
    return int(np.clip(len(data) // 100, 25, 400)) // (1 if _blocks(policy) == 1 else 2)


def _larger(data: Transitions, policy: Policy, best: RandomFourier) -> list[RandomFourier]:
    """More features at the best bandwidth and at the next smaller one, as many as the data allow."""
    most = min(len(data) // (40 * _blocks(policy)), 1000 // _blocks(policy))
    if most < 1.5 * best.num_features:
        return []
    finer = [bandwidth for bandwidth in BANDWIDTHS if bandwidth < best.bandwidth]
    return [replace(best, num_features=most, bandwidth=bandwidth) for bandwidth in (best.bandwidth, *finer[-1:])]


def _blocks(policy: Policy) -> int:
    """How many blocks of features there are: one for each discrete action."""
    return 1 if isinstance(policy, SamplingPolicy) else policy.num_actions or 1
