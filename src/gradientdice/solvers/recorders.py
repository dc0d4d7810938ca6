"""What a learning curve records, computed inside the compiled program."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gradientdice.estimators import Estimator
from gradientdice.functions.design import Design
from gradientdice.functions.rows import DenseRows, Rows


class RatioError(NamedTuple):
    """MSE(τ) = mean over pairs of (τ − τ*)²: both arrays of shape (pairs,) or (pairs, runs) against runs."""

    rows: Rows | None  # the features of each pair; None is a table
    truth: Any

    name = "ratio_error"

    def measure(self, estimator: Estimator, ratio_params: Any) -> Any:
        """One number a run."""
        raw = ratio_params if self.rows is None else self.rows.predict(ratio_params)
        truth = self.truth if self.truth.ndim == 2 else self.truth[:, None]
        return jnp.mean((estimator.ratio(raw) - truth) ** 2, axis=0)

    @classmethod
    def create(cls, features: np.ndarray | None, truth: np.ndarray) -> RatioError:
        """A recorder for features (pairs, K) and true ratios (pairs,) or (pairs, runs)."""
        rows = None if features is None else DenseRows(jnp.asarray(features, dtype=jnp.float32))
        return cls(rows, jnp.asarray(truth, dtype=jnp.float32))


class ValueEstimate(NamedTuple):
    """ρ̂ = E[τ r] over the log."""

    rows: Rows
    weighted_rewards: Any

    name = "value"

    def measure(self, estimator: Estimator, ratio_params: Any) -> Any:
        """One number a run."""
        return self.weighted_rewards @ estimator.ratio(self.rows.predict(ratio_params))

    @classmethod
    def create(cls, design: Design, discount: float) -> ValueEstimate:
        """A recorder over a whole log."""
        keep = slice(0, len(design.rewards) - 1) if discount == 1 and design.absorbing else slice(None)
        weights = design.weights[keep]
        rows = jax.tree.map(
            lambda x: jnp.asarray(x, dtype=None if x.dtype.kind in "iu" else jnp.float32), design.current.take(keep)
        )
        return cls(rows, jnp.asarray(weights * design.rewards[keep] / weights.sum(), dtype=jnp.float32))


Recorder = RatioError | ValueEstimate
