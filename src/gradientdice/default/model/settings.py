"""How large a learned model is and how long it is trained and simulated, for each effort."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from gradientdice.base.effort import Effort

# The number of training steps is for a log of up to this many rows.
USUAL_ROWS = 10_000
# With several policies, each has so many times fewer paths, as many times shorter, and its value is trained for as many
# times fewer steps.
SHORTER_PATHS = 2
# Rows × steps are this many times fewer: most of the time that a policy takes goes to paths from every row.
FEWER_ROW_STEPS, SHARED_LENGTHS = 16, (1, 4, 8, 32)


@dataclass(frozen=True)
class ModelSettings:
    """The settings of the networks and of the simulation.

    Attributes:
        members: networks in the ensemble of each fold.
        width: of the two hidden layers of a dynamics network.
        steps: of its training, for 10⁴ rows.
        batch: rows in a training step.
        paths: simulated paths per network.
        horizon: simulated steps per path; a fitted value continues from there.
        value_width: of the hidden layers of the value network.
        value_steps: of its training.
        row_steps: rows × steps of the paths that start from them, at most.
        lengths: of these paths; those that take more steps are left out.
    """

    members: int
    width: int
    steps: int
    batch: int
    paths: int
    horizon: int
    value_width: int
    value_steps: int
    # More than these take more than a few seconds.
    row_steps: int = 1_600_000
    lengths: tuple[int, ...] = (1, 4, 16, 64)

    def lengths_for(self, rows: int) -> list[int]:
        """Those of paths from so many rows, the shortest among them in any case."""
        return [length for length in self.lengths if length * rows <= self.row_steps] or [self.lengths[0]]

    def shared_by(self, policies: int) -> ModelSettings:
        """The settings for each of several policies: the networks are the same, the simulation of each is shorter.

        Simulating each of them as one alone would take as many times as long. What a shorter simulation does not see,
        the ratio corrects, at the price of a wider interval.
        """
        if policies == 1:
            return self
        return replace(
            self,
            paths=self.paths // SHORTER_PATHS,
            horizon=self.horizon // SHORTER_PATHS,
            value_steps=self.value_steps // SHORTER_PATHS,
            row_steps=self.row_steps // FEWER_ROW_STEPS,
            lengths=SHARED_LENGTHS,
        )

    def steps_for(self, rows: int) -> int:
        """More rows need more steps, but fewer passes over them: as the square root, up to three times as many."""
        return round(self.steps * min(max(math.sqrt(rows / USUAL_ROWS), 1.0), 3.0))


SETTINGS: dict[Effort, ModelSettings] = {
    Effort.QUICK: ModelSettings(2, 64, 800, 256, 128, 150, 64, 400),
    Effort.NORMAL: ModelSettings(2, 128, 2000, 256, 512, 200, 96, 1000),
    Effort.THOROUGH: ModelSettings(3, 256, 8000, 512, 512, 400, 128, 3000),
}
