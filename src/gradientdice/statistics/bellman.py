"""Kernel Bellman loss of a held-out Q: it chooses a function class without the truth, and tests its fit.

    loss = ‖ E[ (r + γV' − Q) ψ ] ‖²,

with ψ the random features of one common kernel, fine and coarse bandwidths mixed, so that every candidate is judged by
the same figure. It is estimated without the bias of squared noise, by leaving out each row's product with itself. The
held-out flow residual of the ratio, the other candidate, picks badly (docs/results/continuous.md). With right features
the residuals have mean 0 given state and action, and the loss is noise around 0; features that miss something leave a
loss of many standard deviations. Where the fit has seen the rows, the figure is a little below 0 when all is well.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradientdice.functions.kernel import FittedKernel, RandomFourier, as_inputs
from gradientdice.functions.rows import BlockRows
from gradientdice.functions.tabular import LoggedTable, Tabular
from gradientdice.log.transitions import Transitions
from gradientdice.policies import Policy
from gradientdice.problem.folds import Folds
from gradientdice.problem.stream import LogDesign
from gradientdice.statistics.influence import HeldOut, Influence

TEST_BANDWIDTHS = (0.15, 0.3, 0.6, 1.2)
TESTS_EACH = 100
FLIPS = 20
# Rows from which the loss of an input is computed.
INPUT_ROWS = 5_000


def test_functions() -> list[RandomFourier]:
    """The common kernel's parts, one for each test bandwidth."""
    return [
        RandomFourier(TESTS_EACH, bandwidth, seed=10_000 + number) for number, bandwidth in enumerate(TEST_BANDWIDTHS)
    ]


def test_kernels(data: Transitions, policy: Policy) -> list[FittedKernel]:
    """The same, scaled to a log."""
    return [functions.fitted(data, policy) for functions in test_functions()]


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
        signed, totals = self._signs(), np.zeros(1 + FLIPS)
        for fold in range(self._folds.count):
            rows = np.flatnonzero(self._folds.rows == fold)
            mass = float(self._weights[rows].sum())
            if mass > 0:
                # A copy has its original's noise: their products are those of a row with itself.
                used, place = np.unique(self._original[rows], return_inverse=True)
                part = np.bincount(place, self._weights[rows] * scores.residual[rows])
                totals += self._squares(used, part[:, None] * signed[used]) / mass**2
        return float(totals[0]), float(totals[1:].std())

    def _signs(self) -> np.ndarray:
        """Those of the residuals themselves, and random ones: (n, 1 + FLIPS)."""
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(len(self._weights), FLIPS))
        return np.column_stack([np.ones(len(signs)), signs])

    @abstractmethod
    def _squares(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """‖Σ_i column_i ψ_i‖² for each column, without each row's product with itself: noise then adds nothing."""


class KernelBellmanLoss(_BellmanLoss):
    """The common judge of one log's candidates."""

    def __init__(self, data: Transitions, policy: Policy, folds: Folds) -> None:
        super().__init__(data, folds)
        self._tests = []
        self._blocks = np.ones((len(data), 1), dtype=bool)
        kernels = test_kernels(data, policy)
        self._states, self._actions = data.states, data.actions if kernels[0].num_actions is None else None
        for kernel in kernels:
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

    def of_inputs(self) -> float:
        """The loss of a residual that is one of the inputs, with variance 1: the mean over the inputs.

        Test functions see the less of a smooth function, the more inputs and actions there are: with 3 inputs it is
        0.06, with 23 it is 0.01. It is at least 1 over the number of rows that it is computed from.
        """
        # A copy has its original's weight beside its own.
        weights = np.bincount(self._original, self._weights, minlength=len(self._weights))
        rows = np.flatnonzero(weights > 0)
        if len(rows) > INPUT_ROWS:
            rows = np.sort(np.random.default_rng(0).choice(rows, INPUT_ROWS, replace=False))
        inputs, weights = as_inputs(self._states[rows], self._actions_at(rows)), weights[rows] / weights[rows].sum()
        centred = inputs - weights @ inputs
        spread = np.sqrt(weights @ centred**2)
        part = weights[:, None] * centred[:, spread > 0] / spread[spread > 0]
        if not part.size:
            return 1.0
        total = 0.0
        for block in self._blocks[rows].T:
            for tests in self._tests:
                picked = tests[rows[block]].astype(np.float64)
                squares = np.sum((picked.T @ part[block]) ** 2, axis=0)
                own = np.sum(picked**2, axis=1) @ part[block] ** 2
                # Inputs less their own mean are correlated: by −1/n, without weights.
                centring = np.sum((weights[block] @ picked) ** 2) * float(weights @ weights)
                total += float(np.mean(squares - own) + centring) / len(self._tests)
        return max(total, 1 / len(rows))

    def _actions_at(self, rows: np.ndarray) -> np.ndarray | None:
        return None if self._actions is None else self._actions[rows]

    @property
    def num_inputs(self) -> int:
        """The numbers in a state and, if they are continuous, in an action."""
        return self._states[0].size + (0 if self._actions is None else self._actions[0].size)

    def forms(self, residuals: Float[np.ndarray, "J n"]) -> BellmanForms:
        """The loss of every combination of some residuals."""
        signed, count = self._signs(), len(residuals)
        sums, own = [], []
        for used, shares in self._folds_of(residuals):
            parts, products = [], np.zeros((count, count))
            for block in self._blocks[used].T:
                chosen, part = used[block], shares[:, block]
                products_of_signs = part.T[:, None, :] * signed[chosen][:, :, None]
                # A fold may have no row of an action, and then nothing says how wide its columns are.
                columns = products_of_signs.reshape(len(chosen), (1 + FLIPS) * count).astype(np.float32)
                for tests in self._tests:
                    picked = tests[chosen]
                    parts.append((picked.T @ columns).astype(np.float64))
                    products += (part * np.sum(picked**2, axis=1)) @ part.T
            stacked = np.concatenate(parts).reshape(-1, 1 + FLIPS, count) / np.sqrt(len(self._tests))
            sums.append(stacked.transpose(1, 2, 0))
            own.append(products / len(self._tests))
        return BellmanForms(np.array(sums), np.array(own))

    def _folds_of(self, residuals: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """For each fold with any weight its distinct rows, and their shares w e / Σw, (J, rows)."""
        for fold in range(self._folds.count):
            rows = np.flatnonzero(self._folds.rows == fold)
            mass = float(self._weights[rows].sum())
            # A copy has its original's noise: their products are those of a row with itself.
            used, place = np.unique(self._original[rows], return_inverse=True)
            shares = residuals[:, rows] * (self._weights[rows] / (mass or 1.0))
            yield used, np.array([np.bincount(place, share, minlength=len(used)) for share in shares])


@dataclass(frozen=True, eq=False)
class BellmanForms:
    """The kernel Bellman loss of combinations Σ_j w_j e_j of some residuals, fold by fold a quadratic form in w.

    Attributes:
        sums: Σ_i e_ij ψ_i / Σ_i 1 of each fold: first as it is, then with random signs.
        own: what each row's product with itself adds to the products of these.
    """

    sums: Float[np.ndarray, "folds signs J tests"]
    own: Float[np.ndarray, "folds J J"]

    def form(self, fold: int) -> Float[np.ndarray, "J J"]:
        """The matrix G of wᵀGw, the mean over all folds but one of the loss with its squared noise.

        The noise is left in, so that a noisy candidate does not pass for a good one by luck: on the control problems
        of `reproduce continuous` combinations that are chosen so have smaller errors.
        """
        others = [k for k in range(len(self.own)) if k != fold] or [fold]
        return np.mean([self.sums[k, 0] @ self.sums[k, 0].T for k in others], axis=0)

    def loss(self, weights: Float[np.ndarray, "folds J"]) -> tuple[float, float]:
        """The loss of a combination with weights for each fold, summed over folds, and its noise, as of the judge."""
        totals = np.zeros(self.sums.shape[1])
        for sums, own, of_one in zip(self.sums, self.own, weights, strict=True):
            totals += np.sum((of_one @ sums) ** 2, axis=1) - of_one @ own @ of_one
        return float(totals[0]), float(totals[1:].std())


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


# More rows than this see no more, and take longer.
MOST_ROWS = 10_000


def bellman_misfit(log: LogDesign, shares: Influence, seed: int) -> float:
    """The kernel Bellman loss of the fit's Q, in standard deviations of its noise."""
    data = log.data
    rows = np.arange(len(data))
    if len(rows) > MOST_ROWS:
        rows = np.random.default_rng(seed).choice(rows, size=MOST_ROWS, replace=False)
    weights = None if data.weights is None else data.weights[rows]
    some = Transitions(
        data.states[rows], data.actions[rows], data.rewards[rows], data.next_states[rows], weights=weights
    )
    judge = KernelBellmanLoss(some, log.policy, Folds.create(some, 1, seed))
    loss, noise = judge(HeldOut(shares.ratio[rows], shares.residual[rows], np.zeros(len(rows)), None))
    return loss / noise if noise > 0 else 0.0
