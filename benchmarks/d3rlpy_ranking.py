"""Fitted Q evaluation by d3rlpy of the candidates of the ranking experiment, written to the table that its page reads.

    python benchmarks/d3rlpy_ranking.py --python /path/to/venv/bin/python [--logs 1] [--first 0] [CASE …]

`benchmarks/d3rlpy_fqe.py` says what the environment needs and how it is run: d3rlpy's own defaults, a fixed number of
updates. The states of a table become vectors with a single 1. What is in the table is not computed again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from d3rlpy_fqe import append_row, fitted_q, read_rows

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (ROOT / "src", ROOT / "studies/src")
TABLE = ROOT / "studies/src/gradientdice_studies/ranking/data/d3rlpy.csv"
COLUMNS = ("case", "seed", "policy", "value", "seconds", "version")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--python", help="of the environment that has d3rlpy")
    parser.add_argument("--first", type=int, default=0, help="the first log")
    parser.add_argument("--logs", type=int, default=1)
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.logs)
    if options.inside:
        evaluate_all(options.cases, seeds, options.inside, options.table)
        return
    if not options.python:
        parser.error("--python is missing: the interpreter of an environment with d3rlpy")
    from gradientdice_studies.ranking.cases import CASES

    cases = options.cases or list(CASES)
    with tempfile.TemporaryDirectory() as folder:
        for name in cases:
            case = CASES[name]()
            for seed in seeds:
                case.log(seed).save(Path(folder) / f"{name}-{seed}.npz")
        command = [options.python, __file__, f"--inside={folder}", f"--first={options.first}", f"--logs={options.logs}"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, SOURCES))}
        subprocess.run([*command, f"--table={options.table}", *cases], env=environment, check=True)


def evaluate_all(cases: list[str], seeds: range, folder: Path, table: Path) -> None:
    """Runs in d3rlpy's environment; seeds first, so that an interrupted run has some of every case."""
    from gradientdice_studies.ranking.cases import CASES

    known = {(row["case"], int(row["seed"]), row["policy"]) for row in read_rows(table)}
    for seed in seeds:
        for name in cases:
            case = CASES[name]()
            log = dict(np.load(folder / f"{name}-{seed}.npz"))
            for policy in case.candidates:
                if (name, seed, policy) in known:
                    continue
                row = one_fit(name, seed, policy, log)
                append_row(table, row)
                print(*row.values(), flush=True)


def one_fit(name: str, seed: int, policy: str, log: dict[str, np.ndarray]) -> dict:
    """A row of the table: one candidate on one log."""
    import d3rlpy  # pyright: ignore[reportMissingImports]

    from gradientdice_studies.ranking.cases import CASES

    case, started = CASES[name](), time.perf_counter()
    candidate, columns = _vectors(case.candidates[policy], log)
    value = fitted_q(candidate, columns, case.discount, seed)
    row = (name, seed, policy, value, time.perf_counter() - started, d3rlpy.__version__)
    return dict(zip(COLUMNS, row, strict=True))


def _vectors(candidate, log: dict[str, np.ndarray]) -> tuple:
    """Policy and log with vectors as states."""
    from gradientdice.policies import DiscretePolicy, TabularPolicy

    if not isinstance(candidate, TabularPolicy):
        return candidate, log
    probabilities = np.asarray(candidate.probabilities)
    policy = DiscretePolicy(lambda states: states @ probabilities, probabilities.shape[1])
    ended = log.get("terminated", np.zeros(len(log["states"]), dtype=bool))
    return policy, {**log, "states": np.eye(len(probabilities))[log["states"]], "terminated": ended}


if __name__ == "__main__":
    main()
