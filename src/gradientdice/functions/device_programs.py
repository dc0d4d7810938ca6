"""Feature rows, predictions and sums, compiled by JAX. Called inside `double_precision`, with data as arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from gradientdice.base.compiling import quickly_compiled


@quickly_compiled(static_argnames="traced")
def feature_rows(
    traced: Callable[..., Any] | None,
    arrays: tuple[Any, ...],
    inputs: Float[Array, "m n d"],
    weights: Float[Array, "n A"],
    absorbing: Float[Array, " n"] | None,
) -> Float[Array, "n K"]:
    """Rows φ ⊗ weights, with the absorbing state's indicator behind them.

    Args:
        traced: from inputs (n, d) and `arrays` to features; None if the inputs are the features.
        arrays: of the features.
        inputs: several for each row, over which the features are averaged.
        weights: of the block of each action.
        absorbing: 1 in the absorbing state; None if there is none.
    """
    base: Any = inputs[0] if traced is None else sum(traced(part, *arrays) for part in inputs) / len(inputs)
    rows = (weights[:, :, None] * base[:, None, :]).reshape(len(weights), -1)
    return rows if absorbing is None else jnp.concatenate([rows, absorbing[:, None]], axis=1)


@quickly_compiled()
def predictions(rows: Float[Array, "n K"], params: Float[Array, "K r"]) -> Float[Array, "n r"]:
    """Predictions x·params for each row, on a device."""
    return jnp.matmul(rows, params, precision="highest")


@quickly_compiled(donate_argnums=0)
def added(
    sums: tuple[Any, Any, Any, Any],
    current: Float[Array, "n K"],
    following: Float[Array, "n K"],
    rewards: Float[Array, " n"],
    weights: Float[Array, " n"],
    folds: Int[Array, " n"],
) -> tuple[tuple[Any, Any, Any, Any], Any]:
    """The sums Σ w x xᵀ, Σ w x̄' xᵀ, Σ w x and Σ w r x of each fold, with those of some rows added to them.

    The number that comes with them is there once they are: unlike the sums, it is not used up by the next call.
    """

    def one(fold: Any, sums: tuple[Any, Any, Any, Any]) -> tuple[Any, Any, Any, Any]:
        gram, after, mean, reward = sums
        scaled = current * jnp.where(folds == fold, weights, 0.0)[:, None]
        return (
            gram.at[fold].add(jnp.matmul(current.T, scaled, precision="highest")),
            after.at[fold].add(jnp.matmul(following.T, scaled, precision="highest")),
            mean.at[fold].add(scaled.sum(axis=0)),
            reward.at[fold].add(jnp.matmul(rewards, scaled, precision="highest")),
        )

    return lax.fori_loop(0, len(sums[0]), one, sums), weights.sum()


@quickly_compiled()
def totals(sums: tuple[Any, Any, Any, Any], chosen: Float[Array, " F"]) -> tuple[Any, Any, Any, Any]:
    """The sums of some folds together: those whose share is 1, not 0."""
    gram, after, mean, reward = (jnp.tensordot(chosen, part, axes=1, precision="highest") for part in sums)
    return gram, after, mean, reward


@quickly_compiled(static_argnames="tests")
def flow_sums(
    tests: int,
    current: Float[Array, "n K"],
    following: Float[Array, "n K"],
    again: Float[Array, " tests"],
    restarts: Float[Array, " n"],
    discount: Float[Array, ""],
    masses: Float[Array, "n c"],
    signs: Float[Array, "n f"],
) -> tuple[Any, Any]:
    """Σ_i m_i s_i (γx̄'_i − x_i) for each column of masses and signs, and Σ_i m_i² ‖γx̄'_i − x_i‖²; see `inference.flow`.

    Args:
        tests: how many of the features count: all but the absorbing state's.
        current: x.
        following: x̄'.
        again: what takes the place of γx̄' after a restart.
        restarts: 1 where there is one.
        discount: γ.
        masses: m; 0 in rows that only fill up.
        signs: s.
    """
    after = jnp.where(restarts[:, None] > 0, again, discount * following[:, :tests])
    change = after - current[:, :tests]
    weighted = (masses[:, :, None] * signs[:, None, :]).reshape(len(masses), -1)
    flow = jnp.matmul(change.T, weighted, precision="highest")
    own = jnp.matmul(jnp.sum(change**2, axis=1), masses**2, precision="highest")
    return flow.reshape(tests, masses.shape[1], signs.shape[1]), own
