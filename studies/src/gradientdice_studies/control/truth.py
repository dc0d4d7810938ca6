"""The truth by Monte Carlo: `python -m gradientdice_studies.control.truth` writes data/truth.json.

Chains of the target and of the behaviour start from the environment's own starts, start again when they end, and know
no time limit; `monte_carlo.py` says what is computed of them. Short chains serve discount .9, long ones .99 and 1. More
are run until their error is small against the gap between target and behaviour.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd

from gradientdice.base.atomic import write_atomically
from gradientdice_studies.control.monte_carlo import Mean, mean_value
from gradientdice_studies.control.simulate import Chains, run_chains
from gradientdice_studies.control.tasks import TASKS, Task

PLACE = Path(__file__).parent / "data" / "truth.json"
# The target's error is to be below this part of the gap; the behaviour's only tells how large the gap is.
TARGET_PART, BEHAVIOR_PART = 0.01, 0.02
MOST_ROUNDS = 40


@dataclass(frozen=True)
class Round:
    """So many chains of so many steps, for some discounts."""

    chains: int
    steps: int
    discounts: tuple[float, ...]


# Both have about as many steps.
ROUNDS = (Round(250, 160, (0.9,)), Round(25, 1_600, (0.99, 1.0)))


@dataclass(frozen=True)
class Truth:
    """What is known of one task at one discount.

    Attributes:
        value: the target's.
        value_error: its standard error.
        behavior: the behaviour's value.
        behavior_error: its standard error.
        step_error: the standard error of running the target policy for n steps is this over √n.
        drift: of the target's average reward after the burn-in, in standard errors.
    """

    value: float
    value_error: float
    behavior: float
    behavior_error: float
    step_error: float
    drift: float

    @property
    def gap(self) -> float:
        """How far target and behaviour are apart."""
        return abs(self.value - self.behavior)

    def running_error(self, rows: int) -> float:
        """The standard error of running the target policy itself for so many steps."""
        return self.step_error / math.sqrt(rows)

    @property
    def gap_in_errors(self) -> float:
        """The gap in standard errors of running the target policy for 10⁴ steps."""
        error = self.running_error(10_000)
        return self.gap / error if error > 0 else math.inf


@cache
def truths() -> dict[str, dict[float, Truth]]:
    """Task -> discount -> what is known, from the file that comes with the package."""
    stored = json.loads(files("gradientdice_studies.control").joinpath("data/truth.json").read_text())
    return {task: {float(discount): Truth(**row) for discount, row in rows.items()} for task, rows in stored.items()}


def with_truths(frame: pd.DataFrame) -> pd.DataFrame:
    """A table of answers with what is known of each task now: answers last longer than truths, which more chains mend.

    Args:
        frame: with the columns of `control.run`.
    """
    known = truths()
    rows = [known[task][discount] for task, discount in zip(frame["task"], frame["discount"], strict=True)]
    errors = [truth.running_error(size) for truth, size in zip(rows, frame["rows"], strict=True)]
    values, behaviors = [truth.value for truth in rows], [truth.behavior for truth in rows]
    return frame.assign(truth=values, true_behavior=behaviors, running_error=errors)


def find(task: Task, most_rounds: int = MOST_ROUNDS, target_part: float = TARGET_PART) -> dict[str, dict[str, float]]:
    """Discount -> the fields of `Truth`.

    Args:
        task: what is simulated.
        most_rounds: of each kind, for each policy.
        target_part: the part of the gap that the target's error is to be below.
    """
    found: dict[float, Truth] = {}
    for kind in ROUNDS:
        discounts = [discount for discount in kind.discounts if discount in task.discounts]
        seen: dict[str, list[Chains]] = {"target": [], "behavior": []}
        for number in range(most_rounds):
            wanted = {
                who: policy
                for who, policy in {"target": task.target, "behavior": task.behavior}.items()
                if number == 0 or not all(_enough(found[discount], who, target_part) for discount in discounts)
            }
            if not wanted:
                break
            for who, policy in wanted.items():
                seed = 1_000 * (who == "behavior") + number
                seen[who].append(run_chains(task, policy, kind.chains, kind.steps, seed))
            joined = {who: _joined(parts) for who, parts in seen.items()}
            for discount in discounts:
                found[discount] = _truth(*(mean_value(joined[who], discount) for who in ("target", "behavior")))
    return {f"{discount:g}": asdict(truth) for discount, truth in found.items()}


def _joined(parts: list[Chains]) -> Chains:
    return Chains(np.concatenate([p.rewards for p in parts]), np.concatenate([p.ended for p in parts]))


def _truth(target: Mean, behavior: Mean) -> Truth:
    return Truth(target.value, target.error, behavior.value, behavior.error, target.step_error, target.drift)


def _enough(truth: Truth, who: str, target_part: float) -> bool:
    """Whether the error is small against the gap."""
    if who == "target":
        return truth.value_error <= target_part * truth.gap
    return truth.behavior_error <= BEHAVIOR_PART * truth.gap


def main() -> None:
    """Simulates the tasks named, or all, and writes each into the file when it is done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", help=", ".join(TASKS))
    parser.add_argument("--place", type=Path, default=PLACE)
    parser.add_argument("--rounds", type=int, default=MOST_ROUNDS)
    parser.add_argument("--part", type=float, default=TARGET_PART, help="of the gap, for the target's error")
    options = parser.parse_args()
    for name in options.tasks or TASKS:
        started = time.perf_counter()
        found = find(TASKS[name](), options.rounds, options.part)
        known = json.loads(options.place.read_text()) if options.place.exists() else {}
        known[name] = found
        text = json.dumps({task: known[task] for task in TASKS if task in known}, indent=1) + "\n"
        write_atomically(options.place, lambda path, text=text: path.write_text(text))
        for discount, row in found.items():
            here = Truth(**row)
            print(
                f"{name} {discount}: target {here.value:.4g} ± {here.value_error:.2g}, behaviour {here.behavior:.4g} ± "
                f"{here.behavior_error:.2g}, gap {here.gap_in_errors:.1f} errors of 10⁴ steps, truth's error "
                f"{here.value_error / here.gap:.4f} of the gap, drift {here.drift:.1f}"
            )
        print(f"{time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
