"""Networks for τ and f."""

from __future__ import annotations

from dataclasses import dataclass

from gradientdice.base.errors import InputError, require_count, require_number


@dataclass(frozen=True)
class MLP:
    """Two multilayer perceptrons of rectified units, one for τ and one for f, over standardised inputs.

    Discrete actions enter as indicators, continuous ones as numbers.

    Attributes:
        hidden: the widths of the hidden layers.
        output_scale: what the last layer's initial weights are multiplied by.
        ratio_start: the value near which the ratio starts (before a positive map). The authors' code starts near 0,
            and 10³ small steps cannot bring the mean ratio to 1; a ratio averages to 1, so that is where to start.
        draws: how many actions to draw in each state from a policy that can only be sampled; each update uses one.

    Example:
        >>> import gradientdice as gd
        >>> gd.MLP(hidden=(64, 64)).ratio_start
        1.0
    """

    hidden: tuple[int, ...] = (64, 64)
    output_scale: float = 1.0
    ratio_start: float = 1.0
    draws: int = 8

    @classmethod
    def paper(cls) -> MLP:
        """The paper's networks as its authors' code starts them: an output layer scaled by 10⁻³, ratios near 0."""
        return cls((64, 64), output_scale=1e-3, ratio_start=0.0)

    def __post_init__(self) -> None:
        if not isinstance(self.hidden, tuple) or not self.hidden:
            raise InputError(f"hidden must be a tuple of layer widths such as (64, 64), not {self.hidden!r:.60}.")
        for width in self.hidden:
            require_count("hidden", width)
        require_number("output_scale", self.output_scale, low=0)
        require_number("ratio_start", self.ratio_start)
        require_count("draws", self.draws)
