"""What a learning curve records, computed on the device."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gradientdice.dice.saddle import SaddleObjective
from gradientdice.dice.stochastic.function_class import FunctionClass
from gradientdice.dice.stochastic.network_source import NetworkSource
from gradientdice.functions.rows import DenseRows, LearnerRows
from gradientdice.problem.design import Design


class Recorder(Protocol):
    """Figures of a ratio."""

    @property
    def names(self) -> tuple[str, ...]:
        """What the figures are called."""
        ...

    @property
    def num_rows(self) -> int:
        """Over how many rows a figure is taken."""
        ...

    def measure(self, functions: FunctionClass, estimator: SaddleObjective, params: Any, chunk: int) -> Any:
        """The figures of the ratio with these parameters, (figures, *runs), by so many rows at a time."""
        ...

    def select(self, cases: np.ndarray) -> Recorder:
        """The recorder for some of the cases."""
        ...


class RatioError(NamedTuple):
    """MSE(τ) = mean over pairs of (τ − τ*)²: both arrays of shape (pairs,) or (pairs, runs) against runs."""

    rows: LearnerRows | None  # the features of each pair; None is a table
    truth: Any

    names = ("ratio_error",)

    @classmethod
    def create(cls, features: np.ndarray | None, truth: np.ndarray) -> RatioError:
        """A recorder for features (pairs, K) and true ratios (pairs,) or (pairs, cases)."""
        rows = None if features is None else DenseRows(jnp.asarray(features, dtype=jnp.float32))
        return cls(rows, jnp.asarray(truth, dtype=jnp.float32))

    @property
    def num_rows(self) -> int:
        """The number of pairs."""
        return len(self.truth)

    def measure(self, functions: FunctionClass, estimator: SaddleObjective, params: Any, chunk: int) -> Any:
        """One figure for each run; there are few pairs, and all are taken at a time."""
        raw = params if self.rows is None else functions.outputs(params, self.rows)
        truth = self.truth if self.truth.ndim == 2 else self.truth[:, None]
        return jnp.mean((estimator.ratio(raw) - truth) ** 2, axis=0)[None]

    def select(self, cases: np.ndarray) -> RatioError:
        """True ratios may differ from case to case."""
        return self if self.truth.ndim == 1 else self._replace(truth=self.truth[:, cases])


class LogMeans(NamedTuple):
    """ρ̂ = E[τ r] and E[τ] over the log."""

    inputs: Any  # feature rows, or inputs of networks
    factors: Any  # (n, 2): weight · reward and weight, the weights summing to 1

    names = ("value", "mean_ratio")

    @classmethod
    def of_design(cls, design: Design, inputs: LearnerRows) -> LogMeans:
        """For linear functions; the inputs are a source's rows, which leave out the absorbing one at discount 1."""
        keep = slice(0, len(inputs))
        weights = design.weights[keep] / design.weights[keep].sum()
        factors = np.stack([weights * design.rewards[keep], weights], axis=1)
        return cls(inputs, jnp.asarray(factors, dtype=jnp.float32))

    @classmethod
    def of_source(cls, source: NetworkSource) -> LogMeans:
        """For networks."""
        return cls(source.current, jnp.stack([source.weights * source.rewards, source.weights], axis=1))

    @property
    def num_rows(self) -> int:
        """The length of the log."""
        return len(self.factors)

    def measure(self, functions: FunctionClass, estimator: SaddleObjective, params: Any, chunk: int) -> Any:
        """Both figures for each run, a chunk of rows at a time."""

        def part(rows: tuple[Any, Any]) -> Any:
            inputs, factors = rows
            return jnp.matmul(factors.T, estimator.ratio(functions.outputs(params, inputs)), precision="highest")

        n, rows = len(self.factors), (self.inputs, self.factors)
        if chunk >= n:
            return part(rows)
        whole = n // chunk * chunk
        shaped = jax.tree.map(lambda leaf: leaf[:whole].reshape(-1, chunk, *leaf.shape[1:]), rows)
        like = jax.eval_shape(part, jax.tree.map(lambda leaf: leaf[:chunk], rows))
        total, _ = lax.scan(lambda total, rows: (total + part(rows), None), jnp.zeros(like.shape, like.dtype), shaped)
        if whole < n:
            total = total + part(jax.tree.map(lambda leaf: leaf[whole:], rows))
        return total

    def select(self, cases: np.ndarray) -> LogMeans:
        """The log is the same for all cases."""
        return self
