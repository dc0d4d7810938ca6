"""Closed forms on a GPU beside NumPy on the processor of the same machine: seconds, and how far the answers are apart.

`python benchmarks/gpu.py --json result.json` runs all parts; `--parts moments default stream` chooses. Each task runs
in a process of its own, within a time limit, so that one that fails loses no other. The logs are drawn by seeded
generators; nothing beside the library and JAX is needed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SOURCES = (str(ROOT / "src"), str(ROOT / "studies/src"))
LIMIT = 170  # seconds for a task
# Set for a process whose programs an earlier one left in JAX's compilation cache.
SECOND = "BENCHMARK_SECOND_PROCESS"
PLACES = {"gpu": {}, "cpu": {"GRADIENTDICE_CLOSED_FORM": "cpu", "JAX_PLATFORMS": "cpu"}}
MOMENT_FIELDS = ("gram", "next_gram", "mean", "reward")
# Where the time of a default answer goes: module, name.
STAGES = {
    "ratios: sums, solves, scores": ("gradientdice.default.search", "ridge_scores"),
    "model: all": ("gradientdice.default.model.values", "simulated_values"),
    "model: dynamics (in a thread with a GPU)": ("gradientdice.default.model.values", "learn_dynamics"),
    "model: simulation": ("gradientdice.default.model.values", "simulate"),
    "model: fitted value": ("gradientdice.default.model.values", "fit_values"),
    "model: paths from rows": ("gradientdice.default.model.values", "row_values"),
    "fitted Q (in a thread)": ("gradientdice.default.fitted_values", "_trained"),
    "Bellman judge: features": ("gradientdice.default.search", "KernelBellmanLoss"),
    "flow check": ("gradientdice.default.automatic", "flow_residuals"),
    "moments in folds": ("gradientdice.default.ridge_scores", "moments_without"),
    "solves": ("gradientdice.default.ridge_scores", "ridge_path"),
}
# Parts of other stages.
INSIDE = (
    "moments in folds",
    "solves",
    *(stage for stage in STAGES if stage.startswith("model: ") and stage[7:] != "all"),
)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """The seconds that some work takes, and what it gives."""
    begin = time.perf_counter()
    found = work()
    return time.perf_counter() - begin, found


def moment_task(rows: int, width: int) -> dict[str, Any]:
    """The moments of kernel features, twice: the first time is with the start of the device and with compiling."""
    import gradientdice as gd

    rng = np.random.default_rng(0)
    states = rng.normal(size=(rows, 4))
    following = 0.9 * states + 0.3 * rng.normal(size=(rows, 4))
    data = gd.Transitions(states, np.zeros(rows, dtype=np.int64), states[:, 0], following, initial_states=states[:1000])
    policy = gd.DiscretePolicy(lambda own: np.ones((len(own), 1)), 1)

    def work() -> gd.Moments:
        return gd.Moments.from_transitions(data, policy, gd.RandomFourier(width - 1, (0.15, 1.5)), chunk_rows=25_000)

    first, moments = timed(work)
    # Some entries stand for all: the whole would be gigabytes.
    part = {name: np.asarray(getattr(moments, name))[..., :200].tolist() for name in ("mean", "reward")}
    part |= {name: getattr(moments, name)[:200, :200].tolist() for name in ("gram", "next_gram")}
    again = timed(work)[0] if os.environ.get("GRADIENTDICE_CLOSED_FORM") != "cpu" else None
    return {"seconds": first, "again": again, "numbers": part}


def default_task(name: str, rows: int, effort: str, discount: float = 0.99) -> dict[str, Any]:
    """The default answer on a control log, in all and by stage."""
    import gradientdice as gd
    from gradientdice_studies.continuous.environments import ENVIRONMENTS

    environment = ENVIRONMENTS[name]()
    data = environment.log(rows, np.random.default_rng(0))
    spent = dict.fromkeys(STAGES, 0.0)
    for stage, (module, attribute) in STAGES.items():
        watch(module, attribute, stage, spent)

    def work() -> gd.Estimate:
        return gd.evaluate(data, environment.target, discount=discount, effort=effort, progress=False)

    seconds, estimate = timed(work)
    stages, later, again = dict(spent), {}, None
    if os.environ.get("GRADIENTDICE_CLOSED_FORM") != "cpu" and not os.environ.get(SECOND):
        again, _ = timed(work)
        later = {stage: value - stages[stage] for stage, value in spent.items()}
    return {
        "seconds": seconds,
        "again": again,
        "stages": stages,
        "stages again": later,
        "numbers": {"value": estimate.value, "interval": list(estimate.interval or ())},
    }


def watch(module: str, attribute: str, stage: str, spent: dict[str, float]) -> None:
    """Adds up the seconds of a function's calls; those of a generator while it is asked for its next item."""
    import importlib

    place = importlib.import_module(module)
    original = getattr(place, attribute)

    def watched(*arguments: Any, **named: Any) -> Any:
        with clock(stage, spent):
            found = original(*arguments, **named)
        return items(found, stage, spent) if hasattr(found, "send") else found

    setattr(place, attribute, watched)


def items(generator: Iterator[Any], stage: str, spent: dict[str, float]) -> Iterator[Any]:
    while True:
        with clock(stage, spent):
            item = next(generator, None)
        if item is None:
            return
        yield item


@contextmanager
def clock(stage: str, spent: dict[str, float]) -> Iterator[None]:
    begin = time.perf_counter()
    try:
        yield
    finally:
        spent[stage] += time.perf_counter() - begin


def stream_task(folder: str, features: int) -> dict[str, Any]:
    """The moments of a log that is read from Parquet while they are summed."""
    import gradientdice as gd

    policy = gd.DiscretePolicy(lambda states: np.tile([0.3, 0.7], (len(states), 1)), 2)
    log = gd.scan(folder)
    seconds, moments = timed(
        lambda: gd.Moments.from_transitions(log, policy, gd.RandomFourier(features // 2 - 1, (0.15, 1.5)))
    )
    numbers = {name: np.asarray(getattr(moments, name)).tolist() for name in MOMENT_FIELDS}
    return {"seconds": seconds, "numbers": numbers}


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "moments": moment_task,
    "default": default_task,
    "stream": stream_task,
}


def run(task: str, arguments: list[Any], place: str, **variables: str) -> dict[str, Any] | None:
    """What a task gives in a process of its own; None, and its messages on the screen, if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [
            sys.executable,
            __file__,
            "--task",
            task,
            "--arguments",
            json.dumps(arguments),
            "--json",
            str(result),
        ]
        paths = os.pathsep.join([*SOURCES, os.environ.get("PYTHONPATH", "")])
        try:
            subprocess.run(
                command,
                env={**os.environ, **PLACES[place], **variables, "PYTHONPATH": paths},
                timeout=LIMIT,
                check=True,
            )
            return json.loads(result.read_text())
        except (subprocess.SubprocessError, OSError, ValueError):
            traceback.print_exc()
            return None


def apart(one: Any, other: Any) -> float:
    """The largest difference of two lists of numbers, as a share of the largest number."""
    first, second = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    return float(np.abs(first - second).max() / np.abs(first).max())


def both(task: str, arguments: list[Any], label: str, places: list[str]) -> dict[str, Any]:
    """A task on the GPU and on the processor, or on one of them, with the largest difference of what they found."""
    row: dict[str, Any] = {"task": label}
    found = {place: run(task, arguments, place) for place in places}
    for place, result in found.items():
        if result is not None:
            row[place] = {name: value for name, value in result.items() if name != "numbers" or task == "default"}
    if len(found) > 1 and all(found.values()):
        numbers = [result["numbers"] for result in found.values() if result is not None]
        row["apart"] = max(apart(numbers[1][name], numbers[0][name]) for name in numbers[0])
    show(row)
    return row


def second_process(name: str, rows: int) -> dict[str, Any]:
    """The default answer on the GPU in a new process that finds its programs in JAX's compilation cache."""
    result = run("default", [name, rows, "normal"], "gpu", **{SECOND: "1"})
    row = {"task": f"default answer, {name}, {rows:,} rows, normal, programs in JAX's cache", "gpu": result}
    show(row)
    return row


def cache(folder: Path) -> dict[str, str]:
    return {"JAX_COMPILATION_CACHE_DIR": str(folder), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}


def show(row: dict[str, Any]) -> None:
    print(f"\n{row['task']}", flush=True)
    for place in PLACES:
        result = row.get(place)
        if result is None:
            continue
        again = "" if result.get("again") is None else f", again in the same process {result['again']:.2f} s"
        answer = f", {result['numbers']}" if "numbers" in result else ""
        print(f"  {place}: {result['seconds']:.2f} s{again}{answer}")
        later = result.get("stages again", {})
        for stage, seconds in result.get("stages", {}).items():
            then = f", then {later[stage]:.2f} s" if stage in later else ""
            print(f"      {'  of which ' if stage in INSIDE else ''}{stage}: {seconds:.2f} s{then}")
    if "apart" in row:
        print(f"  largest relative difference: {row['apart']:.1e}", flush=True)


def stream_rows(rows: int, features: int, places: list[str]) -> dict[str, Any]:
    """The log is written once for both places."""
    sys.path.insert(0, str(Path(__file__).parent))
    import scale_logs

    with tempfile.TemporaryDirectory() as folder:
        written, log = timed(lambda: scale_logs.prepared(Path(folder), "vectors", rows))
        label = f"{rows:,} rows from Parquet, {features} features"
        row = both("stream", [str(log), features], label, places)
    return {**row, "seconds to write the log": written}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--parts", nargs="+", default=["moments", "default", "stream", "cached"], choices=[*TASKS, "cached"]
    )
    parser.add_argument("--places", nargs="+", default=list(PLACES), choices=list(PLACES))
    parser.add_argument("--efforts", nargs="+", default=["normal", "quick"])
    parser.add_argument("--rows", type=float, default=1e5)
    parser.add_argument("--features", type=int, default=10_000)
    parser.add_argument("--stream-rows", type=float, default=1e7)
    parser.add_argument("--stream-features", type=int, default=256)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    parser.add_argument("--arguments", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        options.json.write_text(json.dumps(TASKS[options.task](*json.loads(options.arguments))))
        return
    rows, table = int(options.rows), []
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= cache(Path(folder))  # empty at first, so that first processes compile
        measure(options, rows, table)


def measure(options: argparse.Namespace, rows: int, table: list[dict[str, Any]]) -> None:
    """All parts, one after the other; what is done is written after each."""
    jobs: dict[str, list[Callable[[], dict[str, Any]]]] = {
        "moments": [
            lambda: both(
                "moments",
                [rows, options.features],
                f"moments of {rows:,} × {options.features:,} features",
                options.places,
            )
        ],
        "default": [
            lambda name=name, effort=effort: both(
                "default", [name, rows, effort], f"default answer, {name}, {rows:,} rows, {effort}", options.places
            )
            for effort in options.efforts
            for name in ("pendulum", "cartpole")
        ],
        "cached": [lambda name=name: second_process(name, rows) for name in ("pendulum", "cartpole")],
        "stream": [lambda: stream_rows(int(options.stream_rows), options.stream_features, options.places)],
    }
    failed = False
    for job in [job for part in options.parts for job in jobs[part]]:
        try:
            table.append(job())
        except Exception:  # one part that fails loses no other; the command fails at the end
            traceback.print_exc()
            failed = True
        if options.json:
            options.json.write_text(json.dumps({"rows": table}, indent=2))
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
