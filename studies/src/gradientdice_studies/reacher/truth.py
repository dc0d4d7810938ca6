"""The truth about Reacher by Monte Carlo: `python -m gradientdice_studies.reacher.truth` writes data/truth.json."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from gradientdice.base.atomic import write_atomically
from gradientdice_studies.parallel import worker_pool
from gradientdice_studies.reacher.environment import TARGET_NOISE, Actor, noisy, returns
from gradientdice_studies.reacher.protocols import DISCOUNTS, PROTOCOLS

EPISODES, PARTS, STEPS = 2_000, 20, 130  # 0.9¹³⁰ is 10⁻⁶


def part(number: int) -> np.ndarray:
    """The returns of some episodes."""
    return returns(noisy(Actor.load(), TARGET_NOISE), DISCOUNTS, EPISODES, 1_000 + number, STEPS)


def main() -> None:
    """Simulates all episodes and writes means and standard errors."""
    with worker_pool() as pool:
        every = np.concatenate(list(pool.map(part, range(PARTS))))
    mean, error = every.mean(axis=0), every.std(axis=0, ddof=1) / np.sqrt(len(every))
    table: dict[str, object] = {
        protocol: {f"{g:g}": [mean[k, column], error[k, column]] for k, g in enumerate(DISCOUNTS)}
        for column, protocol in enumerate(PROTOCOLS)
    }
    table["episodes"] = len(every)
    path = Path(__file__).parent / "data" / "truth.json"
    write_atomically(path, lambda place: place.write_text(json.dumps(table, indent=1) + "\n"))
    print(path.read_text())


if __name__ == "__main__":
    main()
