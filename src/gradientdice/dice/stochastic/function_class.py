"""What the learner knows of a function class: linear functions and networks have the same few methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol

from gradientdice.dice.stochastic.initial import Init


class Players(NamedTuple):
    """The parameters of both functions and η.

    A table's or linear parameters have shape (K, *runs), η has shape runs; a network is a list of layers and one run.
    """

    ratio: Any
    critic: Any
    norm_multiplier: Any


class Values(NamedTuple):
    """The functions' values on a minibatch, (batch, *runs), or what the objective's gradient is at each of them."""

    raw: Any  # the ratio before its positive map
    critic: Any
    next_critic: Any
    initial_critic: Any


# Adds to parameters the gradient of Σ amounts · values, where the values are those of one minibatch.
Add = Callable[[Players, Values], Players]


class FunctionClass(Protocol):
    """A pair of parametric functions, τ and f.

    Attributes:
        shares_draws: whether the runs of one seed advance on the same draws as the last axis of shared arrays;
            otherwise each run has parameters and draws of its own.
        records_start: whether the learning curve begins before the first update.
        quick_steps: up to so many steps a run takes less time than optimising its program would.
    """

    shares_draws: ClassVar[bool]
    records_start: ClassVar[bool]
    quick_steps: ClassVar[int]

    @property
    def num_weights(self) -> int:
        """How many parameters one of the functions has."""
        ...

    @property
    def width(self) -> int:
        """How many numbers the widest intermediate result has for one row of a minibatch."""
        ...

    def with_init(self, init: Init) -> FunctionClass:
        """With a solver's initial weights."""
        ...

    def start(self, seed: Any, runs: tuple[int, ...]) -> Players:
        """The first parameters of runs of one seed."""
        ...

    def at(self, players: Players, batch: Any) -> tuple[Values, Add]:
        """The values on a minibatch, and how an amount at each of them changes the parameters."""
        ...

    def next_values(self, critic: Any, batch: Any) -> Any:
        """A critic's values at the next states alone."""
        ...

    def outputs(self, params: Any, inputs: Any) -> Any:
        """One function's values at some rows of a log: (n, *runs)."""
        ...
