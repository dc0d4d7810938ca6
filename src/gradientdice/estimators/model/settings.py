"""How large a learned model is and how long it is trained and simulated, for each effort."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gradientdice.effort import Effort

# The number of training steps is for a log of up to this many rows.
USUAL_ROWS = 10_000


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
    """

    members: int
    width: int
    steps: int
    batch: int
    paths: int
    horizon: int
    value_width: int
    value_steps: int

    def steps_for(self, rows: int) -> int:
        """More rows need more steps, but fewer passes over them: as the square root, up to three times as many."""
        return round(self.steps * min(max(math.sqrt(rows / USUAL_ROWS), 1.0), 3.0))


SETTINGS: dict[Effort, ModelSettings] = {
    Effort.QUICK: ModelSettings(2, 64, 800, 256, 128, 150, 64, 400),
    Effort.NORMAL: ModelSettings(2, 128, 2000, 256, 512, 200, 96, 1000),
    Effort.THOROUGH: ModelSettings(3, 256, 8000, 512, 512, 400, 128, 3000),
}
