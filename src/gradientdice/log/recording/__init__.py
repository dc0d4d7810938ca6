"""`Recorder`: a Gymnasium environment whose steps are written to a log while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gradientdice.base.errors import InputError
from gradientdice.base.extras import optional
from gradientdice.log.files.reading import as_path
from gradientdice.log.formats.observations import size_of
from gradientdice.log.recording.episode_log import ROWS_PER_PART, EpisodeLog

__all__ = ["Recorder"]


def Recorder(env: Any, path: str | Path, *, rows_per_part: int = ROWS_PER_PART) -> Any:
    """Wraps a Gymnasium environment, or a vector of them, and writes a log of its episodes.

    The log is a folder of Parquet files with whole episodes, which `gradientdice.load` reads; recording into a folder
    again adds to it. Whatever ends the program, the files that are there are whole. `close` writes the rest: an
    episode that was not over is then cut, as by a time limit.

    `step(action, log_prob=…)` also records the log-probability of the action under the policy that chose it.

    Args:
        env: an environment, or a vector environment of any mode of automatic reset.
        path: the folder.
        rows_per_part: how many steps a file has, about.

    Returns:
        The wrapped environment.

    Example:
        >>> import gymnasium, tempfile, gradientdice as gd
        >>> folder = tempfile.mkdtemp()
        >>> with gd.Recorder(gymnasium.make("CartPole-v1"), folder) as env:
        ...     observation, info = env.reset(seed=0)
        ...     for _ in range(5):
        ...         result = env.step(0, log_prob=-0.7)
        >>> len(gd.load(folder))
        5
    """
    gymnasium = optional("gymnasium", "gym")
    from gradientdice.log.recording.single import SingleRecorder
    from gradientdice.log.recording.vector import VectorRecorder

    kinds = {gymnasium.Env: SingleRecorder, gymnasium.vector.VectorEnv: VectorRecorder}
    wrapper = next((wrapper for kind, wrapper in kinds.items() if isinstance(env, kind)), None)
    if wrapper is None:
        raise InputError(f"env must be an environment of Gymnasium, not {type(env).__name__}.")
    # Images are refused before anything is made.
    size_of(getattr(env, "single_observation_space", env.observation_space))
    return wrapper(env, EpisodeLog(as_path(path), rows_per_part))
