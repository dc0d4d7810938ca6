"""Choosing a function class without the truth, by the held-out kernel Bellman loss of its Q.

    loss = ‖ E[ (r + γV' − Q) ψ ] ‖²,

with ψ the random features of one common kernel, fine and coarse bandwidths mixed, so that every candidate is judged by
the same figure. It is estimated without the bias of squared noise, by leaving out each row's product with itself. The
held-out flow residual of the ratio, the other candidate, picks badly (docs/results/continuous.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from gradientdice.data.transitions import Transitions
from gradientdice.functions.kernel import FittedKernel, RandomFourier
from gradientdice.functions.rows import BlockRows
from gradientdice.functions.tabular import LoggedTable, Tabular
from gradientdice.inference.scores import HeldOut
from gradientdice.policies import Policy
from gradientdice.problem.folds import Folds
from gradientdice.problem.stream import LogDesign

TEST_BANDWIDTHS = (0.15, 0.3, 0.6, 1.2)
TESTS_EACH = 100
FLIPS = 20


def test_kernels(data: Transitions, policy: Policy) -> list[FittedKernel]:
    """The common kernel's parts, one for each test bandwidth."""
    return [
        RandomFourier(TESTS_EACH, bandwidth, seed=10_000 + number).fitted(data, policy)
        for number, bandwidth in enumerate(TEST_BANDWIDTHS)
    ]


class _BellmanLoss(ABC):
    """The loss over folds; a subclass says what the test functions make of some rows."""

    def __init__(self, data: Transitions, folds: Folds) -> None:
        self._folds = folds
        self._weights = data.row_weights
        self._original = data.units.original

    def __call__(self, scores: HeldOut) -> tuple[float, float]:
        """The loss, summed over folds, and the standard deviation it would have if the residuals were pure noise.

        The loss may come out slightly negative. Its noise is measured by flipping the residuals' signs at random.
        """
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(len(self._weights), FLIPS))
        signed = np.column_stack([np.ones(len(signs)), signs])
        totals = np.zeros(1 + FLIPS)
        for fold in range(self._folds.count):
            rows = np.flatnonzero(self._folds.rows == fold)
            mass = float(self._weights[rows].sum())
            if mass > 0:
                # A copy has its original's noise: their products are those of a row with itself.
                used, place = np.unique(self._original[rows], return_inverse=True)
                part = np.bincount(place, self._weights[rows] * scores.residual[rows])
                totals += self._squares(used, part[:, None] * signed[used]) / mass**2
        return float(totals[0]), float(totals[1:].std())

    @abstractmethod
    def _squares(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """‖Σ_i column_i ψ_i‖² for each column, without each row's product with itself: noise then adds nothing."""


class KernelBellmanLoss(_BellmanLoss):
    """The common judge of one log's candidates."""

    def __init__(self, data: Transitions, policy: Policy, folds: Folds) -> None:
        super().__init__(data, folds)
        self._tests = []
        self._blocks = np.ones((len(data), 1), dtype=bool)
        for kernel in test_kernels(data, policy):
            rows = kernel.at(data.states, data.actions)
            base = rows.base if isinstance(rows, BlockRows) else rows.values
            self._tests.append(base.astype(np.float32))
            if isinstance(rows, BlockRows):
                self._blocks = rows.weights.astype(bool)

    def _squares(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        total = np.zeros(columns.shape[1])
        for block in self._blocks[rows].T:
            chosen, part = rows[block], columns[block]
            for tests in self._tests:
                picked = tests[chosen]
                moments = (picked.T @ part.astype(np.float32)).astype(np.float64)
                own = float(np.sum((part[:, 0] ** 2)[:, None] * picked**2))
                total += (np.sum(moments**2, axis=0) - own) / len(self._tests)
        return total


class TableBellmanLoss(_BellmanLoss):
    """The same for a table: the test functions are the pairs' own indicators."""

    def __init__(self, data: Transitions, folds: Folds) -> None:
        super().__init__(data, folds)
        _, self._pair = np.unique(np.column_stack([data.states, data.actions]), axis=0, return_inverse=True)

    def _squares(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        moments = np.array([np.bincount(self._pair[rows], column) for column in columns.T])
        return np.sum(moments**2, axis=1) - float(np.sum(columns[:, 0] ** 2))


def bellman_judge(log: LogDesign, folds: Folds) -> Callable[[HeldOut], tuple[float, float]]:
    """The judge for a log: its own pairs where they are a table, else the common kernel."""
    if isinstance(log.functions, (Tabular, LoggedTable)):
        return TableBellmanLoss(log.data, folds)
    return KernelBellmanLoss(log.data, log.policy, folds)
