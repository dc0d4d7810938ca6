"""The callback for Stable-Baselines3 and SBX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradientdice.base.extras import optional

if TYPE_CHECKING:
    from gradientdice.evaluation.watching.watch import Watch


def callback(watch: Watch) -> Any:
    """Looks when it is time, writes the figures to the algorithm's logger, and ends the training when it should."""
    library = optional("stable_baselines3.common.callbacks", "sb3")

    class WatchCallback(library.BaseCallback):
        def _on_step(self) -> bool:
            if not watch.due(self.num_timesteps):
                return True
            going_on = watch.look(self.num_timesteps, self.model)
            for name, value in watch.history[-1].items():
                if isinstance(value, float):
                    self.logger.record(f"gradientdice/{name}", value)
            return going_on

    return WatchCallback()
