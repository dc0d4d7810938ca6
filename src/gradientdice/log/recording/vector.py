"""The recorder of a vector of environments, with their automatic reset.

When an environment of a vector is over, it is reset by itself, in one of two ways, or not at all (`DISABLED`). With
`NEXT_STEP` the following call of `step` ignores the action and returns the first observation of the next episode: that
is no step. With `SAME_STEP` the observation returned is already that of the next episode, and the last one of the old
episode is `final_obs` in the info.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from gradientdice.base.errors import InputError
from gradientdice.log.formats.observations import as_logged_action, one
from gradientdice.log.recording.episode_log import EpisodeLog, Trace


class VectorRecorder(gymnasium.vector.VectorWrapper):
    """Records every step of every environment; see `gradientdice.Recorder`."""

    def __init__(self, env: gymnasium.vector.VectorEnv[Any, Any, Any], log: EpisodeLog) -> None:
        super().__init__(env)
        self._log, self._traces = log, [Trace() for _ in range(env.num_envs)]
        mode = (env.metadata or {}).get("autoreset_mode")
        # Gymnasium 1.0 has one mode and no name for it.
        self._mode = "NEXT_STEP" if mode is None else getattr(mode, "name", str(mode))

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode in every environment, or in those of `options["reset_mask"]`."""
        mask = (options or {}).get("reset_mask")  # asked for first: the environment takes it out of the options
        observations, info = self.env.reset(seed=seed, options=options)
        for number, trace in enumerate(self._traces):
            if mask is None or mask[number]:
                trace.end(self._log, terminated=False)
                trace.begin(one(_of(observations, number)))
        return observations, info

    def step(self, actions: Any, log_prob: Any = None) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Takes a step in every environment and records it; `log_prob` has one number for each."""
        result = self.env.step(actions)
        observations, rewards, terminated, truncated, info = result
        if log_prob is not None and np.shape(log_prob) != (self.num_envs,):
            raise InputError(f"log_prob must have shape ({self.num_envs},), not {np.shape(log_prob)}.")
        for number, trace in enumerate(self._traces):
            if trace.state is None:
                if self._mode == "NEXT_STEP":  # this call was the reset, and its action was not taken
                    trace.begin(one(_of(observations, number)))
                continue
            over = bool(terminated[number] or truncated[number])
            following = one(_of(observations, number))
            if over and self._mode == "SAME_STEP":
                first, following = following, one(_last_of(info, number))
            else:
                first = None
            action = as_logged_action(self.env.single_action_space, _of(actions, number))
            trace.step(action, float(rewards[number]), following, None if log_prob is None else log_prob[number])
            if over:
                trace.end(self._log, terminated=bool(terminated[number]))
                if first is not None:
                    trace.begin(first)
        return result

    def close(self, **options: Any) -> None:
        """Writes the rest of the log and closes the environments."""
        for trace in self._traces:
            trace.end(self._log, terminated=False)
        self._log.close()
        super().close(**options)


def _of(batch: Any, number: int) -> Any:
    """What one environment has of a batch."""
    if isinstance(batch, Mapping):
        return {name: _of(part, number) for name, part in batch.items()}
    if isinstance(batch, tuple):
        return tuple(_of(part, number) for part in batch)
    return batch[number]


def _last_of(info: dict[str, Any], number: int) -> Any:
    """The last observation of the episode that was over, with resets in the same step."""
    if "final_obs" not in info:
        raise InputError("The vector environment resets in the same step, and its info has no final_obs.")
    return _of(info["final_obs"], number)
