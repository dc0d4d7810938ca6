"""The recorder of one environment."""

from __future__ import annotations

from typing import Any

import gymnasium

from gradientdice.log.formats.observations import as_logged_action, one
from gradientdice.log.recording.episode_log import EpisodeLog, Trace


class SingleRecorder(gymnasium.Wrapper):
    """Records every step; see `gradientdice.Recorder`."""

    def __init__(self, env: gymnasium.Env[Any, Any], log: EpisodeLog) -> None:
        super().__init__(env)
        self._log, self._trace = log, Trace()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode; one that was not over is cut."""
        self._trace.end(self._log, terminated=False)
        observation, info = self.env.reset(seed=seed, options=options)
        self._trace.begin(one(observation))
        return observation, info

    def step(self, action: Any, log_prob: float | None = None) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Takes a step and records it."""
        result = self.env.step(action)
        observation, reward, terminated, truncated, _ = result
        if self._trace.state is not None:  # after an end some environments go on; such steps belong to no episode
            recorded = as_logged_action(self.env.action_space, action)
            self._trace.step(recorded, float(reward), one(observation), log_prob)
            if terminated or truncated:
                self._trace.end(self._log, terminated=bool(terminated))
        return result

    def close(self) -> None:
        """Writes the rest of the log and closes the environment."""
        self._trace.end(self._log, terminated=False)
        self._log.close()
        super().close()
