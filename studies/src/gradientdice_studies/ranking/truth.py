"""What the control candidates are worth: `python -m gradientdice_studies.ranking.truth` writes data/truth.json.

Chains of each candidate, and of the behaviour, start from the environment's own starts and know no time limit. They are
as long as it takes until what is left counts for less than 10⁻⁵. All candidates of a task have the same starts, so that
their differences are known better than their values. The work comes in rounds that can be done in any order and place:
`one_round` does one, and `gathered` puts them together.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gradientdice.base.atomic import write_atomically
from gradientdice_studies.control.monte_carlo import horizon
from gradientdice_studies.control.simulate import run_chains
from gradientdice_studies.control.tasks import TASKS
from gradientdice_studies.ranking.case import BEHAVIOR, COPY
from gradientdice_studies.ranking.control import DISCOUNT, NAMES, candidates

PLACE = Path(__file__).parent / "data" / "truth.json"
# A log of 10⁴ rows has about 100 episodes: an error of its own is then some ten times that of the truth.
ROUNDS, CHAINS = 32, 400


def jobs(rounds: int = ROUNDS) -> Iterator[tuple[str, str, int]]:
    """(task, candidate, round) of everything that there is to do; rounds first, so that an early end has all alike."""
    names = {task: [BEHAVIOR, *(name for name in candidates(TASKS[task]()) if name != COPY)] for task in NAMES}
    for number in range(rounds):
        for task, chosen in names.items():
            for candidate in chosen:
                yield task, candidate, number


def one_round(task: str, candidate: str, number: int, chains: int = CHAINS) -> dict[str, Any]:
    """Discounted rewards of some chains: their count, mean and sum of squared deviations."""
    simulated = TASKS[task]()
    policy = simulated.behavior if candidate == BEHAVIOR else candidates(simulated)[candidate]
    found = run_chains(simulated, policy, chains, horizon(DISCOUNT), number)
    # Only what comes before the first end belongs to the start.
    alive = np.cumsum(found.ended, axis=1) - found.ended == 0
    powers = (1 - DISCOUNT) * DISCOUNT ** np.arange(found.rewards.shape[1])
    returns = (found.rewards * alive) @ powers
    return {
        **{"task": task, "candidate": candidate, "round": number, "count": len(returns)},
        **{"mean": float(returns.mean()), "squares": float(((returns - returns.mean()) ** 2).sum())},
    }


def gathered(rounds: Iterable[dict[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """Task -> candidate -> value, standard error and number of chains."""
    by_candidate: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rounds:
        by_candidate[row["task"], row["candidate"]].append(row)
    found: dict[str, dict[str, dict[str, float]]] = {}
    for (task, candidate), rows in by_candidate.items():
        counts, means = (np.array([row[name] for row in rows]) for name in ("count", "mean"))
        total = int(counts.sum())
        value = float(counts @ means / total)
        squares = sum(row["squares"] for row in rows) + float(counts @ (means - value) ** 2)
        error = math.sqrt(squares / (total - 1) / total)
        found.setdefault(task, {})[candidate] = {"value": value, "error": error, "chains": total}
    return found


def main() -> None:
    """Does all rounds, or takes those of a file, and writes what they say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--place", type=Path, default=PLACE)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--given", type=Path, help="a JSON list of rounds that were done elsewhere")
    options = parser.parse_args()
    if options.given:
        rounds = json.loads(options.given.read_text())
    else:
        rounds = [one_round(*job) for job in jobs(options.rounds)]
    text = json.dumps(gathered(rounds), indent=1) + "\n"
    write_atomically(options.place, lambda path: path.write_text(text))


if __name__ == "__main__":
    main()
