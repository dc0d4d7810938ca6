"""One ratio of a path of ridges with the Qs that go best with it: the answer, its error, and how far it may be off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradientdice.default.allowance import (
    SIMULATED_LACKING,
    SPREAD,
    lacking_in_mean_square,
    lacking_ratio,
    unexplained_share,
)
from gradientdice.default.ridge_scores import RidgeScores
from gradientdice.default.value_candidates import OwnValue, ValueCandidates, best_weights
from gradientdice.dice.solution import Solution, Status
from gradientdice.estimators.answer import Answer
from gradientdice.estimators.doubly_robust.combine import combine
from gradientdice.estimators.doubly_robust.cross_fit import FOLDS
from gradientdice.functions.kernel import RandomFourier
from gradientdice.problem.problem import Problem
from gradientdice.statistics.bellman import BellmanForms
from gradientdice.statistics.evidence import Evidence
from gradientdice.statistics.influence import HeldOut, Influence
from gradientdice.statistics.intervals import independent_shares, standard_error
from gradientdice.statistics.room import between_answers

# At discount 1 a model answers alone if at most this share of its steps would have left the log's range. On the logs
# named in `allowance.py` it is below 0.1 where the model is right (cart-pole, pendulum and four of five logs of
# half-cheetah) and above where it is not (hopper, the fifth).
MOST_LEAVING = 0.1


@dataclass(frozen=True, eq=False)
class Candidate:
    """The ratio of one ridge with its combination of Qs, and what came of it.

    Attributes:
        functions: the features.
        ridge: of the ratio.
        shares: the weights of each kind of Q, the mean over folds.
        loss: the held-out kernel Bellman loss of the combination, summed over folds.
        noise: the loss's standard deviation if the residuals were pure noise.
        answer: the doubly robust answer.
        error: the answer's standard error.
        bias: what the answer may take over of Q's error, estimated (`allowance.py`).
        lacking: the same from what the ratio may lack; 0 where another kind of Q shows the first.
        distances: how far the answer is from those with other kinds of Q, with signs, where these show the bias.
        undirected: the part of that bias which has no sign: of networks that differ, and of the Bellman loss.
        weights: of each candidate for Q, the mean over folds.
    """

    functions: RandomFourier
    ridge: float
    shares: dict[str, float]
    loss: float
    noise: float
    answer: Answer
    error: float
    bias: float
    lacking: float
    distances: tuple[float, ...]
    undirected: float
    weights: Float[np.ndarray, " J"]

    @property
    def misfit(self) -> float:
        """How large an error misfit may make, as a standard deviation."""
        return max(self.bias, self.lacking)


@dataclass(frozen=True, eq=False)
class Trial:
    """What the ridges of one discount share.

    Attributes:
        problem: the log and the policy.
        functions: the features.
        path: ratios and Qs of all ridges.
        values: the candidates for Q.
        forms: of their kernel Bellman loss.
        own: what a learned model says by itself; None without one.
        input_loss: the loss of a residual that is an input with variance 1; None where the allowance does not need it.
    """

    problem: Problem
    functions: RandomFourier
    path: RidgeScores
    values: ValueCandidates
    forms: BellmanForms
    own: OwnValue | None
    input_loss: float | None = None

    @property
    def is_simulated(self) -> bool:
        """Whether networks' Qs answer alone: a model's explain themselves and, at discount 1, stay in the log.

        Paths at discount 1 cannot be followed to where V matters little, so that all depends on where they go.
        """
        if self.own is None or not self.values.simulated:
            return False
        return self.path.discount < 1 or self.own.left_share <= MOST_LEAVING

    def candidate(self, number: int) -> Candidate:
        """The ratio of one ridge with the best combination of Qs.

        Where a learned model's Qs and a fitted one answer, those with each kind of Q show how much depends on the
        choice.
        """
        data, folds, path = self.problem.data, self.problem.folds(FOLDS), self.path
        ratio, share = path.ratio[number], self.problem.row_share(path.discount)
        apart = self.is_simulated
        weights = self._weights(ratio, (*self.values.simulated, *self.values.fitted) if apart else None)
        value, shares = self._combined(self.values.combined(data, folds, ratio, weights))
        loss, noise = self.forms.loss(weights)
        mass = float(np.average(shares.ratio, weights=data.row_weights))
        distances = self._distances(ratio, value)
        lacking = lacking_ratio(loss / FOLDS, noise / FOLDS, mass)
        if self.input_loss is not None:
            square = float(np.average(shares.residual**2, weights=data.row_weights))
            in_square = lacking_in_mean_square(loss / FOLDS, noise / FOLDS, mass, self.input_loss, square)
            lacking = max(lacking, in_square)
        undirected = SPREAD * self.own.spread if self.own is not None and distances else 0.0
        if apart:
            undirected, lacking = max(undirected, SIMULATED_LACKING * lacking), 0.0
        bias = max(between_answers(distances), undirected)
        if not apart:
            # The further bounds say nothing of the error's sign.
            bias, distances = max(bias, self._bias(ratio, weights, value, shares)), ()
        evidence = Evidence(
            mean_ratio=mass + (1 - share) * float(path.absorbing_ratio[number]),
            bellman=True,
            left=self.own.left_share if apart and self.own is not None else None,
            outlived=self._outlived(mass) if apart else None,
        )
        stats = {"condition_number": path.condition_number[number], "num_features": path.num_features}
        answer = Answer(
            value=value,
            influence=shares,
            ratio=shares.ratio,
            solution=Solution(np.zeros(0), np.zeros(0), 0.0, Status.OK, stats),
            evidence=evidence,
            functions=repr(self.functions),
        )
        return Candidate(
            self.functions,
            path.ridges[number],
            self.values.shares(weights),
            loss,
            noise,
            answer,
            standard_error(independent_shares(shares, data)),
            bias,
            lacking,
            distances,
            undirected,
            weights.mean(axis=0),
        )

    def _outlived(self, mass: float) -> float | None:
        """By what factor ratio and model disagree on how much of the policy's time is before an end.

        Where the target survives for longer than the log's episodes, a ratio can miss most of that time, and with it
        what it should correct.
        """
        if self.own is None or self.path.discount == 1 or not self.problem.data.ended.any():
            return None
        one, other = max(mass, 0.0), self.own.lasting
        return max(one, other) / min(one, other) if min(one, other) > 0 else math.inf

    def _weights(self, ratio: np.ndarray, among: Sequence[int] | None) -> np.ndarray:
        mass = self.problem.row_share(self.path.discount) * ratio
        return best_weights(self.values, self.problem.data, self.problem.folds(FOLDS), mass, self.forms, among)

    def _distances(self, ratio: np.ndarray, value: float) -> tuple[float, ...]:
        """How far the answer is from those with each kind of Q, and from the model's own value if it rests on it.

        There are none without a model, and below discount 1 with one that does not explain its own Q.
        """
        simulated = self.values.modelled if self.path.discount == 1 else self.values.simulated
        if self.own is None or not simulated:
            return ()
        kinds: list[Sequence[int] | None] = [self.values.others]
        if self.is_simulated:
            kinds.append(None)
        if self.values.fitted or not self.is_simulated:
            kinds.append(simulated)
        if self.values.fitted:
            kinds.append(self.values.fitted)
        answers = [self._answer_among(ratio, among) for among in kinds]
        if self.is_simulated:
            answers.append(self.own.value)
        return tuple(value - other for other in answers)

    def _answer_among(self, ratio: np.ndarray, among: Sequence[int] | None) -> float:
        """With the best combination of some of the Qs; None for all."""
        scores = self.values.combined(self.problem.data, self.problem.folds(FOLDS), ratio, self._weights(ratio, among))
        return self._combined(scores)[0]

    def _bias(self, ratio: np.ndarray, weights: np.ndarray, value: float, shares: Influence) -> float:
        """What the answer may take over of Q's error: the largest over directions to the candidates for Q."""
        data = self.problem.data
        loss, noise = self.forms.loss(weights)
        largest = 0.0
        for number in range(len(self.values.names)):
            moved, moved_shares = self._combined(self.values.alone(data, ratio, number))
            apart = standard_error(independent_shares(_difference(shares, moved_shares), data))
            # Without what the noise of the difference adds on average.
            way = math.sqrt(max(0.0, (value - moved) ** 2 - apart**2))
            length, _ = self.forms.loss(weights - np.eye(len(self.values.names))[number])
            largest = max(largest, way * unexplained_share(loss, noise, length))
        return largest

    def _combined(self, scores: HeldOut) -> tuple[float, Influence]:
        discount = self.path.discount
        return combine(discount, self.problem.data, scores, self.problem.row_share(discount))


def _difference(one: Influence, other: Influence) -> Influence:
    """The shares in the error of a difference of two answers."""
    initial = None if one.initial is None or other.initial is None else one.initial - other.initial
    return Influence(one.rows - other.rows, initial, one.ratio, one.residual)
