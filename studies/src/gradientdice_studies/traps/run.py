"""Evaluates every family's logs and sets each verdict and interval beside the truth."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gradientdice.base.errors import InputError
from gradientdice.evaluation.evaluate import evaluate
from gradientdice_studies.parallel import fill_parts
from gradientdice_studies.store import ResultStore
from gradientdice_studies.traps.families import families

# Logs of one family are evaluated in parts of this many.
PART = 25


@dataclass(frozen=True)
class Scale:
    """How many logs each family has, and each with continuous states, which take longer."""

    logs: int = 100
    continuous_logs: int = 100

    def of(self, states: str) -> int:
        """How many logs a family with such states has."""
        return self.continuous_logs if states == "continuous" else self.logs


QUICK = Scale(logs=5, continuous_logs=5)


def run(folder: Path, scale: Scale, *, force: bool = False) -> tuple[ResultStore, pd.DataFrame]:
    """One row per log."""
    store = ResultStore(folder, "traps", asdict(scale), force=force)
    parts = {
        store.part(f"{number}-{first}.json"): (name, range(first, min(first + PART, scale.of(family.states))))
        for number, (name, family) in enumerate(families().items())
        for first in range(0, scale.of(family.states), PART)
    }
    fill_parts(store, "parts of families", parts, run_part)
    frame = pd.concat([pd.read_json(path) for path in parts], ignore_index=True)
    store.write(folder / "traps.csv", lambda path: frame.to_csv(path, index=False))
    return store, frame


def run_part(name: str, seeds: range) -> list[dict[str, Any]]:
    """Some logs of one family."""
    family = families()[name]
    truth = family.truth()
    return [{"family": name, "seed": seed, **judged(name, seed, truth)} for seed in seeds]


def judged(name: str, seed: int, truth: float) -> dict[str, Any]:
    """One log's verdict, and whether its interval holds the truth."""
    family = families()[name]
    case = family.log(np.random.default_rng([11, seed]))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is warned of is in the verdict
            # Thousands of logs: without networks, which take longer than all else that the verdict rests on.
            options = {"discount": family.discount, "effort": "quick", **case.options}
            found = evaluate(case.data, case.policy, **options)
    except InputError as error:
        return {"verdict": "refused", "inside": None, "value": None, "low": None, "high": None, "why": str(error)}
    row = {"verdict": str(found.verdict), "value": found.value, "why": "; ".join(found.reasons)}
    if found.interval is None:
        return {**row, "inside": None, "low": None, "high": None}
    low, high = found.interval
    return {**row, "inside": bool(low <= truth <= high), "low": low, "high": high}
