"""The speed of an answer: import, a table, given features, and the moment pass beside plain dgemm in the same run.

Run it alone on the machine: `python benchmarks/evaluate.py`.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import gradientdice as gd
from gradientdice.problem.moments import Moments


def seconds(work, repeats: int = 3) -> float:
    """The fastest of some runs."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


class PeakMemory:
    """How much the process's memory grows at most inside a `with`, looked at every 10 ms."""

    def __enter__(self) -> PeakMemory:
        self._start, self._peak, self._done = _resident(), 0, threading.Event()
        self._watcher = threading.Thread(target=self._watch)
        self._watcher.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._watcher.join()
        self.gained = self._peak - self._start

    def _watch(self) -> None:
        while not self._done.wait(0.01):
            self._peak = max(self._peak, _resident())


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def given_features(rows: int, width: int) -> tuple[gd.Transitions, gd.DiscretePolicy, gd.LinearFeatures]:
    """A log whose states are their own features; the target has one action."""
    rng = np.random.default_rng(0)
    states = rng.normal(size=(rows, width))
    following = 0.9 * states
    rewards = states[:, 0] + rng.normal(size=rows)
    data = gd.Transitions(states, np.zeros(rows, dtype=np.int64), rewards, following, initial_states=states[:1000])
    policy = gd.DiscretePolicy(lambda s: np.ones((len(s), 1)), 1)
    return data, policy, gd.LinearFeatures(lambda s, a: s, intercept=True)


LOAD = """
import sys, gradientdice as gd
gd.load(sys.argv[1])
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) / 1024**2)
"""


def loading(folder: Path) -> None:
    """The memory of a process that does nothing but load 10⁷ rows of 10 floats (0.75 GiB)."""
    rows, rng = 10_000_000, np.random.default_rng(0)
    states = rng.normal(size=(rows, 4))
    data = gd.Transitions(states, rng.normal(size=(rows, 1)), rng.normal(size=rows), states + 0.1)
    for suffix in (".parquet", ".npz"):
        path = folder / f"log{suffix}"
        data.save(path)
        peak = subprocess.run([sys.executable, "-c", LOAD, str(path)], check=True, capture_output=True, text=True)
        print(f"loading 10⁷ rows × 10 floats from {suffix:9s}      {float(peak.stdout):6.2f} GiB at most")
        path.unlink()


ANSWER = """
import sys, time, numpy as np, gradientdice as gd
from gradientdice_studies.continuous.environments import ENVIRONMENTS
name, rows, functions = sys.argv[1:]
if name in ENVIRONMENTS:
    environment = ENVIRONMENTS[name]()
    data, target = environment.log(int(rows), np.random.default_rng([2, 0])), environment.target
else:
    from gradientdice_studies.control.simulate import make_log
    from gradientdice_studies.control.tasks import TASKS
    task = TASKS[name]()
    data, target = make_log(task, int(rows), 0), task.target
started = time.perf_counter()
gd.evaluate(data, target, discount=0.99, functions=gd.MLP() if functions == "networks" else None)
spent = time.perf_counter() - started
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(spent, int(peak.split()[1]) / 1024**2)
"""
# Beside the problems of two to four numbers: wide layers in the actor, many numbers in a state, several actions.
DEMANDING = ("reacher", "ant", "acrobot")


def continuous_answers() -> None:
    """Control problems: the default, and networks, each in a process that does nothing else."""
    from gradientdice_studies.continuous.environments import ENVIRONMENTS

    for functions, rows, label, names in (
        ("default", 10_000, "10⁴", (*ENVIRONMENTS, *DEMANDING)),
        ("default", 100_000, "10⁵", (*ENVIRONMENTS, *DEMANDING)),
        ("networks", 10_000, "10⁴", ENVIRONMENTS),
    ):
        for name in names:
            command = [sys.executable, "-c", ANSWER, name, str(rows), functions]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            spent, peak = map(float, done.stdout.split())
            print(
                f"{label} transitions of {name:13s}, {functions:8s}  {spent:8.1f} s, {peak:.2f} GiB at most", flush=True
            )


def large_tables() -> None:
    """Taxi and PageRank with 10⁶ transitions, as the shootout logs them."""
    from gradientdice_studies.shootout.problems import TABULAR

    for name, label in (("taxi", "Taxi, 2,000 × 6"), ("page-rank", "PageRank, 10⁵ pages")):
        problem = TABULAR[name]()
        data = problem.log(1_000_000, 0.0, np.random.default_rng(0))
        started = time.perf_counter()
        gd.evaluate(data, problem.policy, discount=1.0, functions=problem.functions)
        print(f"10⁶ transitions of {label:19s}       {time.perf_counter() - started:8.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--large", action="store_true", help="also 10⁶ × 256 features (about 6 GB), loading, and the default"
    )
    parser.add_argument("--control", action="store_true", help="the default and networks on control problems, no more")
    arguments = parser.parse_args()
    if arguments.control:
        continuous_answers()
        return
    bare = seconds(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True))
    light = seconds(lambda: subprocess.run([sys.executable, "-c", "import gradientdice"], check=True))
    print(f"import gradientdice                          {light - bare:8.2f} s beyond a bare interpreter")

    mdp, target = gd.mdp.boyan_chain("continuing"), gd.TabularPolicy(np.tile([0.1, 0.9], (13, 1)))
    data = mdp.sample(100_000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
    print(
        f"10⁵ tabular transitions, interval, verdict   {seconds(lambda: gd.evaluate(data, target, discount=1.0)):8.2f} s"
    )

    rows, width = 100_000, 256
    log, policy, functions = given_features(rows, width)
    print(
        f"10⁵ × 256 given features, the same           {seconds(lambda: gd.evaluate(log, policy, discount=0.9, functions=functions)):8.2f} s"
    )
    answer = gd.evaluate(log, policy, discount=0.9, functions=functions)
    print(f"its improvement on the behaviour, when asked {seconds(lambda: answer.improvement, repeats=1):8.2f} s more")

    features = np.random.default_rng(0).normal(size=(65_536, width))
    other = np.ascontiguousarray(features[::-1])
    product = seconds(lambda: features.T @ other)
    rate = 2 * len(features) * width**2 / product
    from gradientdice.functions.rows import DenseRows

    current, following, weights = DenseRows(features), DenseRows(other), np.ones(len(features))
    moments = seconds(lambda: Moments.from_rows(current, following, weights, weights, width))
    # C = XᵀX and B = X'ᵀX, counted as two full products as if no symmetry were used.
    print(
        f"moment pass at {4 * len(features) * width**2 / moments / rate:.0%} of dgemm's rate in the same run ({rate / 1e9:.0f} GFLOP/s)"
    )

    if arguments.large:
        log, policy, functions = given_features(1_000_000, width)
        with PeakMemory() as memory:
            spent = seconds(lambda: gd.evaluate(log, policy, discount=0.9, functions=functions), repeats=1)
        beyond = memory.gained / 1024**3
        print(f"10⁶ × 256 given features, the same           {spent:8.2f} s, {beyond:.1f} GiB beyond the data")
        del log
        with tempfile.TemporaryDirectory() as folder:
            loading(Path(folder))
        large_tables()
        continuous_answers()


if __name__ == "__main__":
    main()
