"""Ranks the ten candidates of every case on its logs; one row per log and candidate."""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from gradientdice.estimators.trajectory.importance import WIS
from gradientdice.evaluation.interval import whole_interval
from gradientdice.evaluation.rank import rank
from gradientdice.evaluation.ranking import Ranking
from gradientdice.evaluation.select import selected
from gradientdice.log.transitions import Transitions
from gradientdice.policies import SamplingPolicy
from gradientdice.problem.problem import Problem
from gradientdice_studies.parallel import fill_parts
from gradientdice_studies.ranking.case import Case
from gradientdice_studies.ranking.cases import CASES
from gradientdice_studies.ranking.control import CONTROL
from gradientdice_studies.store import ResultStore


@dataclass(frozen=True)
class Scale:
    """How many logs each table has, and each control task, which takes longer."""

    logs: int = 50
    control_logs: int = 50


QUICK = Scale(logs=4, control_logs=0)


@dataclass(frozen=True)
class Cell:
    """One log of one case."""

    case: str
    seed: int

    @property
    def name(self) -> str:
        """Of its part."""
        return f"{self.case.replace(' ', '-')}-{self.seed}"


def cells(scale: Scale) -> Iterator[Cell]:
    """The grid; seeds before cases, so that an interrupted run has some of everything."""
    counts = {name: scale.control_logs if name in CONTROL else scale.logs for name in CASES}
    for seed in range(max(counts.values())):
        for name, count in counts.items():
            if seed < count:
                yield Cell(name, seed)


def run(folder: Path, scale: Scale, *, force: bool = False) -> tuple[ResultStore, pd.DataFrame]:
    """Runs what is missing and gathers it: one row per log and candidate."""
    store = ResultStore(folder, "ranking", {"cases": list(CASES)}, force=force)
    parts = {store.part(f"{cell.name}.json"): (cell,) for cell in cells(scale)}
    fill_parts(store, "logs", parts, answers)
    frame = pd.DataFrame([row for path in parts for row in json.loads(path.read_text())])
    store.write(folder / "ranking.csv", lambda path: frame.to_csv(path, index=False))
    return store, frame


def answers(cell: Cell) -> list[dict[str, Any]]:
    """What is said about each candidate of one log, in plain numbers; the truth is no part of it."""
    case = CASES[cell.case]()
    data = case.log(cell.seed)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is warned of is in the verdict
        ranking = rank(data, case.candidates, case.discount, seed=cell.seed, progress=False)
        seconds = time.process_time() - started
        chosen = selected(ranking)
        # The same log for someone who has only candidates that are no better: whatever is deployed is an error.
        only = {name: ranking.estimates[name] for name in case.no_better}
        mistaken = selected(replace(ranking, estimates=only))
        importance = weighted_importance(case, data)
    log = {
        **asdict(cell),
        "rows": len(data),
        "episodes": data.units.count,
        "baseline": ranking.side.sources.value,
        "cpu_seconds": seconds,
    }
    rows = []
    for row in ranking.to_dict()["policies"]:
        name = row["policy"]
        row |= {
            "unpaired": unpaired_width(ranking, name),
            "chosen": name == chosen.choice,
            "shown_better": name in chosen.better,
            "mistaken": name == mistaken.choice,
            "importance": importance.get(name),
        }
        rows.append({**log, **row})
    return rows


def unpaired_width(ranking: Ranking, name: str) -> float:
    """How wide the interval of the difference would be if policy and baseline came from logs of their own."""
    estimate = ranking.estimates[name]
    assert estimate.interval is not None
    own = estimate.interval[1] - estimate.interval[0]
    low, high = whole_interval(ranking.side.sources, estimate.intervals).ends
    return math.hypot(own, high - low)


def weighted_importance(case: Case, data: Transitions) -> dict[str, float]:
    """Each candidate's value by weighted importance sampling; none where a policy can only be sampled."""
    return {
        name: WIS(case.discount).answer(Problem(data, policy)).value
        for name, policy in case.candidates.items()
        if not isinstance(policy, SamplingPolicy)
    }
