"""What the estimators for trajectories share: importance ratios β = π(a|s)/μ(a|s), and the log as episodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from gradientdice.base.errors import InputError, first_bad_row
from gradientdice.estimators.behavior_cloning import BehaviorCloning
from gradientdice.estimators.needs import (
    require_action_probabilities,
    require_episodes,
    require_logged_probabilities,
    target_probabilities,
)
from gradientdice.log.sequence import breaks
from gradientdice.log.transitions import Transitions
from gradientdice.policies import Policy

# Logged log-probabilities may be above 0 by rounding, no more.
ROUNDING = 1e-6
# The largest logarithm of a product of ratios: its square, summed over any log, is still a number.
LARGEST = 340.0
# Ratios are heavy-tailed: their mean differs from 1 significantly from this many standard errors on.
RATIO_NOISE = 5.0
# Probabilities that are written with few digits may be off by this.
RATIO_ROUNDING = 0.01


def importance_ratios(
    name: str, data: Transitions, policy: Policy, behavior: BehaviorCloning | None
) -> Float[np.ndarray, " n"]:
    """β = π(a|s)/μ(a|s) of each logged action.

    Args:
        name: the estimator's, for refusals.
        data: the log; its behavior_log_probs are μ if it has them.
        policy: π.
        behavior: how to estimate μ where the log does not have it.

    Raises:
        InputError: if μ is not known and not to be estimated, or gives a logged action probability 0.
    """
    target = target_probabilities(name, data, policy)
    if data.behavior_log_probs is None and behavior is not None:
        logs = behavior.log_probabilities(data, require_action_probabilities(name, data, policy))
    else:
        logs = require_logged_probabilities(name, data)
    if (logs > ROUNDING).any():
        row = first_bad_row(logs > ROUNDING)
        raise InputError(
            f"behavior_log_probs are logarithms of probabilities and must not be above 0; row {row} is {logs[row]:.6g}."
        )
    # Below the smallest ordinary number 1/μ is not one either.
    impossible = logs < np.log(np.finfo(np.float64).tiny)
    if impossible.any():
        row = first_bad_row(impossible)
        raise InputError(
            f"{name} divides by the behaviour's probabilities, and behavior_log_probs gives the action of row {row} "
            f"probability 0 (its logarithm is {logs[row]:g}), though it was taken: correct or drop such rows."
        )
    return target * np.exp(-logs)


@dataclass(frozen=True, eq=False)
class Episodes:
    """A log's rows as trajectories. Episodes are numbered 0, 1, … in the order of their own numbers.

    Attributes:
        index: (n,) the episode of each row.
        step: (n,) the time of each row within its episode, from 0.
        order: (n,) the rows by episode, and by time within it.
        length: (E,) how many rows each episode has.
        terminated: (E,) whether it ended in the environment; else it was cut, and its last next state is a real one.
        weights: (E,) how often it counts.
    """

    index: Int[np.ndarray, " n"]
    step: Int[np.ndarray, " n"]
    order: Int[np.ndarray, " n"]
    length: Int[np.ndarray, " E"]
    terminated: Bool[np.ndarray, " E"]
    weights: Float[np.ndarray, " E"]

    @classmethod
    def of(cls, name: str, data: Transitions) -> Episodes:
        """The episodes of a log.

        Args:
            name: the estimator's, for refusals.
            data: the log.

        Raises:
            InputError: if the log has no episodes, one goes on after its end, its rows count differently, or (where
                states are whole numbers) do not follow each other.
        """
        require_episodes(name, data)
        assert data.episodes is not None
        numbers, index, length = np.unique(data.episodes, return_inverse=True, return_counts=True)
        order = np.argsort(index, kind="stable")
        start = np.cumsum(length) - length
        step = np.empty(len(data), dtype=np.int64)
        step[order] = np.arange(len(data)) - np.repeat(start, length)
        last = order[start + length - 1]
        before, after = order[:-1], order[1:]
        within = index[before] == index[after]
        before, after = before[within], after[within]
        for flag in (data.terminated, data.truncated):
            if flag is not None and flag[before].any():
                row = int(before[np.argmax(flag[before])])
                raise InputError(
                    f"{name} needs whole trajectories, and episode {data.episodes[row]} goes on after it ended in row "
                    f"{row}: give what follows an end an episode number of its own."
                )
        if len(before):
            apart = breaks(data, before, after)
            # Numbers with a fraction may be rounded differently, but not most of them.
            if apart.any() if data.states.dtype.kind in "iu" else apart.mean() > 0.5:
                row, then = int(before[np.argmax(apart)]), int(after[np.argmax(apart)])
                raise InputError(
                    f"{name} needs whole trajectories, and in episode {data.episodes[row]} row {then} does not begin "
                    f"where row {row} leads: give the rows of each episode in time order, none left out."
                )
        weights = data.row_weights[last]
        if data.weights is not None and (data.weights != weights[index]).any():
            raise InputError(
                f"{name} takes whole trajectories: weights must be the same for all rows of an episode, or left out."
            )
        terminated = data.ended[last]
        return cls(index, step, order, length, terminated, weights)

    def __len__(self) -> int:
        return len(self.length)

    @property
    def first(self) -> Int[np.ndarray, " E"]:
        """Each episode's first row."""
        return self.order[np.cumsum(self.length) - self.length]

    @property
    def last(self) -> Int[np.ndarray, " E"]:
        """Each episode's last row."""
        return self.order[np.cumsum(self.length) - 1]

    @property
    def horizon(self) -> int:
        """The length of the longest episode."""
        return int(self.length.max())

    @cached_property
    def _by_step(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows by time, and by episode within it; and where each time begins."""
        rows = self.order[np.argsort(self.step[self.order], kind="stable")]
        return rows, np.concatenate([[0], np.cumsum(np.bincount(self.step))])

    def at(self, step: int) -> Int[np.ndarray, " m"]:
        """The rows at one time, by episode."""
        rows, begin = self._by_step
        return rows[begin[step] : begin[step + 1]]

    def forwards(self) -> Iterator[tuple[int, Int[np.ndarray, " m"]]]:
        """Each time from 0 on, and its rows by episode."""
        return ((step, self.at(step)) for step in range(self.horizon))

    def backwards(self) -> Iterator[tuple[int, Int[np.ndarray, " m"]]]:
        """Each time from the last to 0, and its rows by episode."""
        return ((step, self.at(step)) for step in reversed(range(self.horizon)))

    def log_products(self, ratios: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """The logarithm of β_{0:t} of each row: −inf from the first β = 0 on."""
        with np.errstate(divide="ignore"):
            logs = np.log(ratios)
        total, so_far = np.empty(len(logs)), np.zeros(len(self))
        for _, rows in self.forwards():
            so_far[self.index[rows]] += logs[rows]
            total[rows] = so_far[self.index[rows]]
        return total

    def products(self, name: str, ratios: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """β_{0:t} of each row.

        Raises:
            InputError: if the square of one is too large for a number.
        """
        logs = self.log_products(ratios)
        if (logs > LARGEST).any():
            row = int(np.argmax(logs))
            raise InputError(
                f"{name}: the product of the importance ratios up to row {row} is too large for numbers "
                f"(e^{logs[row]:.0f}): policy and behaviour differ too much for so many steps. Use GradientDICE."
            )
        return np.exp(logs)


def require_behavior(behavior: object) -> None:
    """An error unless this is a way to estimate μ, or none."""
    if behavior is not None and not isinstance(behavior, BehaviorCloning):
        raise InputError(f"behavior must be BehaviorCloning(…) or None, not {behavior!r:.60}.")


def ratio_cautions(data: Transitions, ratios: Float[np.ndarray, " n"]) -> tuple[str, ...]:
    """A caution where the probabilities cannot be right: in every state the ratios' mean is 1 under the behaviour.

    Given the past, each ratio has that mean, so that their errors are not correlated even within an episode. Answers
    that divide by the ratios' sum would not show that all of them are wrong by a factor.
    """
    weights = data.row_weights
    mean, noise = ratio_mean(ratios, weights)
    if abs(mean - 1) <= max(RATIO_NOISE * noise, RATIO_ROUNDING):
        return ()
    which = "the estimated probabilities" if data.behavior_log_probs is None else "behavior_log_probs"
    return (
        f"the importance ratios average {mean:.3g} over the log with a noise of {noise:.1g}, where they should average "
        f"1: either {which} are wrong, or the policy takes actions that the behaviour never does; what would help: "
        "check them, or use GradientDICE, which does not need them",
    )


def ratio_mean(ratios: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"]) -> tuple[float, float]:
    """The weighted mean of the ratios, and its standard error if the true mean is 1."""
    scale = max(float(ratios.max()), 1.0)  # squares of large ratios would not be numbers
    share = weights / weights.sum()
    return scale * float(share @ (ratios / scale)), scale * float(np.linalg.norm(share * (ratios - 1) / scale))


def behavior_notes(data: Transitions, behavior: BehaviorCloning | None) -> tuple[str, ...]:
    """What the reader of a trajectory estimator's answer should know about its input."""
    notes = []
    if data.behavior_log_probs is None and behavior is not None:
        notes.append("the behaviour's probabilities are estimated from the log; the interval takes them as known")
    if data.initial_states is not None:
        notes.append("initial_states are not used: trajectories begin where they begin")
    return tuple(notes)
