"""Does the past of steps with continuous states help to predict them?

As for a table, but the means given (s, a) that are taken off targets and functions of the past are ridge regressions on
random features, each fitted to other runs. What the two regressions miss enters as a product, and noise is measured by
random signs. Where (s, a) determines nearly all that follows, there is nothing left for the past to say.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from gradientdice.functions.kernel import as_inputs
from gradientdice.log.transitions import Transitions
from gradientdice.statistics.past import Past, dependence, random_signs, signed

# Steps that are looked at: of more, what the regressions miss would be seen too.
MOST_STEPS = 3_000
FOLDS = 3
# Features of (s, a), fine and coarse, shared among discrete actions, and of the step before.
FEATURES, BANDWIDTHS, PAST_FEATURES, PAST_BANDWIDTH = 300, (0.3, 1.0), 40, 0.5
# The ridges, relative to the mean square of a feature, of which the one with the smallest held-out error is used.
RIDGES = (1e-8, 1e-6, 1e-4, 1e-2)
# Targets are cut here, in standard deviations, so that places where features miss much do not hide all others.
CLIP = 3.0
# A target of which (s, a) leaves less than this share unexplained has no noise of its own: what is left is misfit.
LEAST_NOISE = 0.05


class KernelHistory:
    """The past of a log with continuous states, less what (s, a) says about it; one for all estimators."""

    def __init__(self, data: Transitions, past: Past, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._past, self._rng = past, rng
        states = _standardised(as_inputs(data.states[past.rows], None))
        actions = data.actions[past.rows]
        codes = np.unique(actions, return_inverse=True)[1] if _is_discrete(actions) else None
        self._regression = _Regression(_features(states, actions, codes, rng), _folds(past, rng))
        taken = _standardised(as_inputs(actions, None)) if codes is None else np.eye(codes.max() + 1)[codes]
        inputs = np.column_stack([states, taken])
        waves = _waves(inputs, PAST_FEATURES, PAST_BANDWIDTH, rng)
        means = np.column_stack([past.mean(column) for column in self._regression.residuals(inputs).T])
        before = np.column_stack([past.before(wave) for wave in waves.T])
        self._groups = [self._regression.residuals(before), self._regression.residuals(means)]
        self._reward = self._target(data.rewards[past.rows])
        self._is_exact = self._reward is None and self._leaves_little(_moves(data, past))
        self._signs = random_signs(int(past.known.sum()), rng)

    def dependence(self, residual: Float[np.ndarray, " n"] | None) -> float:
        """How much rewards, and residuals r + γV' − Q if given, depend on the past, in deviations of noise.

        It is 0 where (s, a) determines the reward and the next state: residuals are then the features' misfit alone.
        """
        if self._is_exact:
            return 0.0
        known, past = self._past.known, self._past
        own = None if residual is None else self._target(residual[past.rows])
        targets = [target for target in (own, self._reward) if target is not None]
        surprises = [past.before(target) * known for target in targets] + [past.mean(target) for target in targets]
        groups = list(self._groups)
        if surprises:
            groups += [column[:, None] for column in self._regression.residuals(np.column_stack(surprises)).T]
        groups = [group[known] for group in groups]
        parts = []
        for target in targets:
            parts.append((groups, signed(target[known], self._signs)))
        return dependence(parts) if parts else 0.0

    def change(self, eras: Int[np.ndarray, " n"], residual: Float[np.ndarray, " n"] | None) -> float:
        """How much rewards, and residuals if given, depend on the era in which they were logged."""
        if self._is_exact:
            return 0.0
        own = None if residual is None else self._target(residual[self._past.rows])
        targets = [target for target in (own, self._reward) if target is not None]
        era = eras[self._past.rows]
        group = self._regression.residuals(np.eye(era.max() + 1)[era])
        signs = random_signs(len(era), self._rng)
        parts = [([group], signed(target, signs)) for target in targets]
        return dependence(parts) if parts else 0.0

    def _leaves_little(self, moves: tuple[np.ndarray, np.ndarray]) -> bool:
        """Whether (s, a) determines nearly all of how the state moves, where the episode went on."""
        change, alive = moves
        filled = np.where(alive[:, None], change, self._regression.predicted(change, alive))
        left = self._regression.residuals(filled - filled.mean(axis=0))
        # Median deviations: a wall that stops a few of the steps says nothing about the others.
        return bool(np.all(_deviation(left[alive]) ** 2 <= LEAST_NOISE * _deviation(filled[alive]) ** 2))

    def _target(self, values: np.ndarray) -> np.ndarray | None:
        """A target less what (s, a) says about it; None if hardly anything is left."""
        values = values - values.mean()
        spread = values.std()
        if spread <= 1e-12 * max(1.0, float(np.abs(values).max())):
            return None
        left = self._regression.residuals(np.clip(values, -CLIP * spread, CLIP * spread)[:, None])[:, 0]
        return left if left.var() > LEAST_NOISE * spread**2 else None


class _Regression:
    """Ridge regressions on features, each fitted without the fold that it predicts."""

    def __init__(self, features: np.ndarray, folds: np.ndarray) -> None:
        self._features, self._folds = features, folds
        self._parts = []
        for fold in range(FOLDS):
            fitted = features[folds != fold]
            values, vectors = np.linalg.eigh(fitted.T @ fitted)
            self._parts.append((np.maximum(values, 0.0), vectors))

    def predicted(self, targets: Float[np.ndarray, "m k"], known: Bool[np.ndarray, " m"]) -> Float[np.ndarray, "m k"]:
        """The targets as those of the known rows alone predict them."""
        inside = self._features[known]
        gram = inside.T @ inside + RIDGES[1] * len(inside) * np.eye(inside.shape[1])
        return self._features @ np.linalg.solve(gram, inside.T @ targets[known])

    def residuals(self, targets: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
        """What is left of some targets, each with the ridge that leaves least."""
        left = np.empty((len(RIDGES), *targets.shape))
        for fold, (values, vectors) in enumerate(self._parts):
            out = self._folds == fold
            inside, predicted = self._features[~out], self._features[out] @ vectors
            moments = vectors.T @ (inside.T @ targets[~out])
            for number, ridge in enumerate(RIDGES):
                shrunk = moments / (values + ridge * len(inside))[:, None]
                left[number, out] = targets[out] - predicted @ shrunk
        best = np.argmin(np.sum(left**2, axis=1), axis=0)
        return np.take_along_axis(left, best[None, None, :], axis=0)[0]


def _moves(data: Transitions, past: Past) -> tuple[Float[np.ndarray, "m d"], Bool[np.ndarray, " m"]]:
    """How the state moves at each step, and where the episode went on: what follows an end means nothing."""
    rows = past.rows
    return as_inputs(data.next_states[rows], None) - as_inputs(data.states[rows], None), ~data.ended[rows]


def _features(
    states: np.ndarray, actions: np.ndarray, codes: np.ndarray | None, rng: np.random.Generator
) -> np.ndarray:
    """(m, features) of state and action: a block for each discrete action, else waves over both."""
    if codes is None:
        inputs, size = np.column_stack([states, _standardised(as_inputs(actions, None))]), FEATURES
    else:
        inputs, size = states, max(FEATURES // (codes.max() + 1), 20)
    waves = [_waves(inputs, size // len(BANDWIDTHS), bandwidth, rng) for bandwidth in BANDWIDTHS]
    base = np.column_stack([np.ones(len(inputs)), inputs, *waves])
    if codes is None:
        return base
    return np.concatenate([base * (codes == code)[:, None] for code in range(codes.max() + 1)], axis=1)


def _waves(inputs: np.ndarray, count: int, bandwidth: float, rng: np.random.Generator) -> np.ndarray:
    """Random Fourier features of unit mean square."""
    size = inputs.shape[1]
    frequencies = rng.normal(size=(size, count)) / (bandwidth * np.sqrt(size))
    return np.sqrt(2) * np.cos(inputs @ frequencies + rng.uniform(0, 2 * np.pi, count))


def _folds(past: Past, rng: np.random.Generator) -> Int[np.ndarray, " m"]:
    """Folds of whole runs, or of equal pieces of the log where there are few of them."""
    runs, run = np.unique(past.start, return_inverse=True)
    if len(runs) < 2 * FOLDS:
        return np.arange(len(run)) * FOLDS // len(run)
    return (rng.permutation(len(runs)) % FOLDS)[run]


def _standardised(inputs: np.ndarray) -> np.ndarray:
    spread = inputs.std(axis=0)
    return (inputs - inputs.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def _deviation(values: np.ndarray) -> np.ndarray:
    return np.median(np.abs(values - np.median(values, axis=0)), axis=0)


def _is_discrete(actions: np.ndarray) -> bool:
    return actions.ndim == 1 and actions.dtype.kind in "iu"
