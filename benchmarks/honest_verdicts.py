"""Verdicts on honest logs of the suites, to hold a version against another: did a new check doubt what was trusted?

    python benchmarks/honest_verdicts.py verdicts.json                  # writes the verdicts of this version
    python benchmarks/honest_verdicts.py --against verdicts.json        # prints where this version differs

The logs are those of the honest families of the traps' study (`--logs` of each) and of the problems of the verdicts'
study that are answered by a table. With `--all` the families with a trap are answered too.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

import gradientdice as gd
from gradientdice_studies.coverage.problems import problems
from gradientdice_studies.traps.families import families
from gradientdice_studies.verdicts.run import OVERLAPS, logged_with


def found(logs: int, *, traps: bool) -> dict[str, str]:
    """The verdict of each log, by its name."""
    verdicts = {}
    for name, family in families().items():
        if family.trap != "honest" and not traps:
            continue
        for seed in range(logs):
            case = family.log(np.random.default_rng([11, seed]))
            options = {"discount": family.discount, "effort": "quick", **case.options}
            verdicts[f"{family.trap}: {name}, {seed}"] = judged(case.data, case.policy, options)
    for name, make in problems().items():
        problem = logged_with(make(), OVERLAPS["good"])
        policy = gd.TabularPolicy(problem.target[: problem.terminal])
        for seed in range(logs):
            data = problem.trajectories(3_000, np.random.default_rng([seed, 3_000]))
            verdicts[f"honest: {name}, {seed}"] = judged(data, policy, {"discount": 0.9})
    return verdicts


def judged(data: gd.Transitions, policy: object, options: dict) -> str:
    """The verdict with its reasons' figures, or the word refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimate = gd.evaluate(data, policy, **options)
    except gd.InputError as error:
        return f"refused: {error}"
    doubted = sorted(check.name for check in estimate.checks if check.verdict is not gd.Verdict.TRUST)
    return ": ".join([str(estimate.verdict), *doubted])


def main() -> None:
    """Write the verdicts, or compare them with those of another version."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--logs", type=int, default=5)
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    today = found(arguments.logs, traps=arguments.all)
    print(f"{len(today)} logs:", dict(Counter(verdict.partition(":")[0] for verdict in today.values())))
    if arguments.file is not None:
        arguments.file.write_text(json.dumps(today, indent=0))
    if arguments.against is not None:
        before = json.loads(arguments.against.read_text())
        changed = {name: (before[name], now) for name, now in today.items() if before.get(name, now) != now}
        for name, (was, now) in changed.items():
            print(f"{name}: {was} -> {now}")
        print(f"{len(changed)} of {len(today)} verdicts or their reasons differ")


if __name__ == "__main__":
    main()
