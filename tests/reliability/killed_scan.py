"""Answers from scanned logs that kill their own process when a file is put in place; see killing.py."""

import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np

import gradientdice as gd

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from gradientdice.log.scanning import opening
from reliability.killing import dying
from scans import as_function, features, small_table, with_fields, written

PARTS = 3
# Each part of the moments and of the scores has a checkpoint. Where the episodes of a table come in no order each part of
# the counts and of the scores has three files beside it; what pairs with few rows need is a pass without episodes.
FILES = 2 * PARTS + 2 * 4 * PARTS + PARTS
# A part whose episodes are spilled is done with its fourth file: a process that is killed at the third begins it anew.
PORTION = 4
KILLS = PORTION * FILES


@patch.object(opening, "PART_ROWS", 1)
def answers(folder: Path, checkpoint: Path | None = None) -> list[float]:
    """The values and intervals of a log with features, and of a table whose episodes come in no order."""
    data, policy = small_table(noise=1.0)
    shuffled = with_fields(data, episodes=np.random.default_rng(0).permutation(40)[data.episodes])
    group, found = -(-len(data) // PARTS), []
    for name, log, functions in (("features", data, features()), ("table", shuffled, None)):
        if not (folder / name).exists():
            written(folder / name, log, group=group)
        target = policy if functions is None else as_function(policy)
        place = None if checkpoint is None else checkpoint / name
        scanned = gd.scan(folder / name)
        estimate = gd.evaluate(scanned, target, discount=0.9, functions=functions, checkpoint=place)
        found += [estimate.value, *(estimate.interval or ())]
    return found


if __name__ == "__main__":
    dying(int(sys.argv[2]), sys.argv[3])
    answers(Path(sys.argv[1]), Path(sys.argv[1]) / "checkpoint")
