"""What an interval has room for beside sampling noise, cause by cause, for a value and for a difference of two.

In a difference each cause goes its own way:

- **Misfit** is a normal error of a given size. Where it was judged by the distances between answers with several kinds
  of Q, the difference has distances of its own, d₁ − d₂: what is wrong with a Q in the same way for both policies
  cancels. Elsewhere, and for the part of it that has no sign, the two errors are taken to be as correlated as the
  sampling errors.
- **Unlogged steps and outcomes** are bounds. They add up.
- **Unseen starts** are the same starts for both: what they may change is the range of V₁ − V₂ over states.
- **What the interval spans** beside its own answer adds up, the lower side of one with the upper side of the other.

The difference of an answer to itself, the same policy with the same influence values, has no room at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from scipy.stats import norm

from gradientdice.statistics.units import unseen_starts
from gradientdice.statistics.unlogged import UnseenOutcomes

# How much of the distance between two answers counts as a standard deviation of the error. On 34 logs of 10⁴ rows of
# the control tasks that methods are developed on, at discounts 0.9 and 0.99, intervals with 0.26, 0.36 and 0.51 of it
# hold the truth in 92%, 95% and 95% of the cases; with fitted Q evaluation as a further kind of Q, on 32 logs and at
# discount 1 too, 0.36 in 95% (with 0.3 of the distance to the kernel's answers as well, with 0.25 of it in 91%).
APART = 0.36

Sides = tuple[float, float]


@dataclass(frozen=True, eq=False)
class UnseenStarts:
    """Starts that a few initial states, all alike, do not show.

    Attributes:
        count: how many initial states there are.
        gains: (S,) what each state is worth beyond the start that was seen, times 1 − γ.
    """

    count: int
    gains: Float[np.ndarray, " S"]

    def sides(self, confidence: float) -> Sides:
        """Room below and above: other starts are worth no less than the worst state, and no more than the best."""
        unseen = unseen_starts(self.count, confidence)
        return unseen * max(0.0, -float(self.gains.min())), unseen * max(0.0, float(self.gains.max()))

    def minus(self, other: UnseenStarts | None) -> UnseenStarts:
        """That of a difference; a value that has none does not depend on the starts."""
        return self if other is None else replace(self, gains=self.gains - other.gains)


@dataclass(frozen=True, eq=False)
class Room:
    """What an interval has room for beside sampling noise.

    Attributes:
        misfit: the size of the error that misfit of the functions may make, as a standard deviation.
        distances: how far the answer lies from those with other kinds of Q, with signs, if the misfit follows from
            them; else empty.
        undirected: the part of the misfit that has no sign, where there are distances.
        steps: what steps that were never logged may change at most.
        outcomes: outcomes that were never seen, of one policy or of two.
        starts: initial states that were never seen; None where there are enough.
        spanned: room below and above for another answer's interval.
        spanned_at: the confidence for which that is.
        answer: equal for the same answer for the same policy; empty if that is not known.
    """

    misfit: float = 0.0
    distances: tuple[float, ...] = ()
    undirected: float = 0.0
    steps: float = 0.0
    outcomes: tuple[UnseenOutcomes, ...] = ()
    starts: UnseenStarts | None = None
    spanned: Sides = (0.0, 0.0)
    spanned_at: float = 0.95
    answer: str = ""

    def sides(self, confidence: float) -> Sides:
        """How much an interval of this confidence is widened below and above."""
        even = margin(self.misfit, confidence) + self.steps
        even += sum(outcomes.error(confidence) for outcomes in self.outcomes)
        sides = [(even, even)]
        if self.starts is not None:
            sides.append(self.starts.sides(confidence))
        if any(self.spanned):
            scale = margin(1.0, confidence) / margin(1.0, self.spanned_at)
            sides.append((scale * self.spanned[0], scale * self.spanned[1]))
        return sum(below for below, _ in sides), sum(above for _, above in sides)

    def causes(self, confidence: float) -> dict[str, float]:
        """How much each cause widens an interval of this confidence, the mean of both sides; those that do."""
        starts = (0.0, 0.0) if self.starts is None else self.starts.sides(confidence)
        scale = margin(1.0, confidence) / margin(1.0, self.spanned_at)
        found = {
            "misfit of the functions": margin(self.misfit, confidence),
            "steps that were never logged": self.steps,
            "outcomes that were never seen": sum(outcomes.error(confidence) for outcomes in self.outcomes),
            "starts that were never seen": sum(starts) / 2,
            "the default's own interval": scale * sum(self.spanned) / 2,
        }
        return {cause: size for cause, size in found.items() if size > 0}

    def scaled(self, share: float) -> Room:
        """The room of a value that has this share in another."""
        return replace(
            self,
            misfit=share * self.misfit,
            distances=tuple(share * distance for distance in self.distances),
            undirected=share * self.undirected,
            steps=share * self.steps,
            outcomes=tuple(replace(own, spread=share * own.spread) for own in self.outcomes),
            starts=None if self.starts is None else replace(self.starts, gains=share * self.starts.gains),
            spanned=(share * self.spanned[0], share * self.spanned[1]),
            answer="",
        )

    def minus(self, other: Room, correlation: float) -> Room:
        """The room of a difference.

        Args:
            other: of the value that is taken off.
            correlation: of the two sampling errors.
        """
        if self.answer and self.answer == other.answer:
            return Room()
        distances = _apart(self.distances, other.distances)
        starts = None
        if self.starts is not None:
            starts = self.starts.minus(other.starts)
        elif other.starts is not None:
            starts = replace(other.starts, gains=-other.starts.gains)
        if distances is None:
            undirected, misfit = 0.0, _unsigned(self.misfit, other.misfit, correlation)
        else:
            undirected = _unsigned(self.undirected, other.undirected, correlation)
            misfit = max(between_answers(distances), undirected)
        return Room(
            misfit,
            distances or (),
            undirected,
            self.steps + other.steps,
            self.outcomes + other.outcomes,
            starts,
            (self.spanned[0] + other.spanned[1], self.spanned[1] + other.spanned[0]),
            self.spanned_at,
        )


def _unsigned(one: float, other: float, correlation: float) -> float:
    """The size of the difference of two errors of these sizes."""
    return math.sqrt(max(0.0, one**2 + other**2 - 2 * correlation * one * other))


def between_answers(distances: tuple[float, ...]) -> float:
    """The size of the misfit where answers of other kinds of Q are so far away."""
    return APART * max((abs(distance) for distance in distances), default=0.0)


def margin(size: float, confidence: float) -> float:
    """How much an interval is widened on both sides for an error of this size.

    In a direction that nothing is known of, the answer is off by the size times a standard normal number.
    """
    return float(norm.ppf(0.5 + confidence / 2)) * size


def _apart(one: tuple[float, ...], other: tuple[float, ...]) -> tuple[float, ...] | None:
    """The distances of a difference, if both are known for the same kinds of Q."""
    if not one or len(one) != len(other):
        return None
    return tuple(first - second for first, second in zip(one, other, strict=True))
