"""A sweep of a table and of networks that kills its own process when a checkpoint is put in place; see killing.py."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import optax

import gradientdice as gd

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from reliability.killing import dying

PORTIONS = 10
# Of each of the two trainings.
FILES = 2 * PORTIONS


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


if __name__ == "__main__":
    dying(int(sys.argv[2]), sys.argv[3])
    sweep(Path(sys.argv[1]))
