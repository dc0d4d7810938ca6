"""A sweep of a table and of networks that kills its own process when a checkpoint is put in place.

Run as `python killed_sweep.py FOLDER NUMBER MOMENT`: SIGKILL, which no program can answer, comes just before or just after
the checkpoint of that number gets its name.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import optax

import gradientdice as gd

PORTIONS = 10
MOMENTS = ("before", "after")


def sweep(checkpoint: Path | None = None) -> Any:
    """Ten portions of linear and of neural training, with all that a state may hold; a table of the curves."""
    mdp = gd.mdp.TabularMDP(np.full((3, 2, 3), 1 / 3), np.arange(6.0).reshape(3, 2), np.ones(3) / 3)
    data = mdp.sample(200, np.full((3, 2), 1 / 6), np.random.default_rng(0))
    solver = gd.PrimalDual(
        40, 0.01, 16, record_every=4, optimizer=optax.adam(1.0), average=0.9, target_rate=0.1, clip_norm=1.0
    )
    policy, functions = gd.TabularPolicy(np.full((3, 2), 0.5)), [gd.Tabular(3, 2), gd.MLP((8,))]
    return gd.sweep(
        data, policy, gd.GradientDICE(0.5), functions, solver, seeds=1, progress=False, checkpoint=checkpoint
    )


def killed(folder: Path, number: int, moment: str) -> bool:
    """Whether a process that goes on from this folder was killed; if not, it came to its end."""
    child = subprocess.run([sys.executable, __file__, str(folder), str(number), moment])
    assert child.returncode in (0, -signal.SIGKILL), child
    return child.returncode != 0


def kills_at_every_portion(folder: Path, moment: str, every: int = 1) -> int:
    """How many processes were killed, one after the other, until one came to its end.

    Each is killed at one of its first checkpoints, so that every portion of both trainings is the last of a process;
    or at a later one, so that every so many-th is.
    """
    kills = 0
    # One that is killed before its first checkpoint has its name would never get further.
    while kills <= 2 * PORTIONS and killed(folder, every + (moment == "before"), moment):
        kills += 1
    return kills


def _dying(number: int, moment: str) -> Any:
    replace, done = os.replace, []

    def replace_or_die(*given: Any) -> None:
        done.append(given)
        if len(done) == number and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        replace(*given)
        if len(done) == number and moment == "after":
            os.kill(os.getpid(), signal.SIGKILL)

    return replace_or_die


if __name__ == "__main__":
    os.replace = _dying(int(sys.argv[2]), sys.argv[3])
    sweep(Path(sys.argv[1]))
