"""The study of exports: every way of writing a log, loaded as users load it, beside the truth."""

from __future__ import annotations

import csv
import json
import re
import tempfile
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import gradientdice as gd
from gradientdice.log.fields import ARRAYS
from gradientdice_studies.files.domains import DOMAINS, Domain
from gradientdice_studies.files.exports import Export
from gradientdice_studies.files.ways import FORMATS, MISS, NOT_TRUSTED, REFUSED, RIGHT, WAYS, Way
from gradientdice_studies.parallel import fill_parts
from gradientdice_studies.store import ResultStore

WRONG, WORSE, CRASH = "wrong and trusted", "worse deployed", "crash"
NOT_APPLICABLE = "not applicable"
OUTCOMES = (RIGHT, MISS, REFUSED, NOT_TRUSTED, WRONG, WORSE, CRASH, NOT_APPLICABLE)
DEFECTS = (WRONG, WORSE, CRASH)
# No learned models: a table is answered alike at every effort.
EFFORT = "quick"
# A miss of a 95% interval by less than so many standard errors is chance.
CHANCE = 3.0
LONGEST_MESSAGE = 400
# Words by which a message says which part of the log or of the policy it is about.
SUBJECTS = (*ARRAYS, "steps", "policy", "episode", "action", "state", "reward", "next state", "date")


@dataclass(frozen=True)
class Scale:
    """How many of the domains are tried, in the order of `DOMAINS`."""

    domains: int = len(DOMAINS)


def run(folder: Path, scale: Scale, *, force: bool = False) -> tuple[ResultStore, pd.DataFrame]:
    """One row per domain, way, format and call."""
    store = ResultStore(folder, "files", asdict(scale), force=force)
    names = list(DOMAINS)[: scale.domains]
    parts = {
        store.part(f"{name}-{number}.json"): (name, way.name)
        for name in names
        for number, way in enumerate(WAYS)
        if name in (way.domains or DOMAINS)
    }
    fill_parts(store, "exports", parts, run_part)
    frame = pd.DataFrame([row for path in parts for row in json.loads(path.read_text())])
    store.write(folder / "files.csv", lambda path: frame.to_csv(path, index=False))
    return store, frame


def run_part(domain_name: str, way_name: str) -> list[dict[str, Any]]:
    """One export in every format, through `evaluate` and `select`."""
    domain, way = DOMAINS[domain_name](), next(way for way in WAYS if way.name == way_name)
    rows = []
    for kind in FORMATS:
        case = {"domain": domain.name, "way": way.name, "group": way.group, "format": kind, "knowable": way.knowable}
        accepts = way.scanned if kind == "scan" else way.accepts
        if accepts is None or kind not in way.formats:
            found = [{"call": call, "outcome": NOT_APPLICABLE} for call in ("evaluate", "select")]
        else:
            found = _tried(domain, way, kind)
        rows += [{**case, **_EMPTY, **one, "expected": _expected(one, accepts)} for one in found]
    return rows


_EMPTY: dict[str, Any] = dict.fromkeys(
    ("value", "low", "high", "truth", "standard_error", "verdict", "choice", "reason", "message_names_its_subject")
)


def _expected(found: dict[str, Any], accepts: frozenset[str] | None) -> bool:
    """Whether an expert would accept this outcome.

    A chance miss passes where an answer does, and an answer with a caution where it need not be trusted.
    """
    outcome = found["outcome"]
    if accepts is None or outcome == NOT_APPLICABLE:
        return True
    if found["call"] == "select" and accepts != {REFUSED}:
        return outcome == RIGHT or (outcome == REFUSED and REFUSED in accepts)
    if outcome == RIGHT and found.get("verdict", "trust") != "trust" and NOT_TRUSTED in accepts:
        return True
    return outcome in accepts or (outcome == MISS and RIGHT in accepts)


def _tried(domain: Domain, way: Way, kind: str) -> list[dict[str, Any]]:
    """Both calls; where the log is refused, so are they."""
    export = way.make(domain, kind == "scan")
    found = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call, judged in (("evaluate", _evaluated), ("select", _selected)):
            try:
                found.append({"call": call, **judged(domain, export, _loaded(export, kind, Path(folder)))})
            except gd.InputError as error:
                message = str(error).replace(f"{folder}/", "")
                found.append({"call": call, "outcome": REFUSED, "reason": message, **_message(message, export)})
            except Exception as error:  # whatever else it is, it is a defect
                found.append({"call": call, "outcome": CRASH, "reason": f"{type(error).__name__}: {error}"})
    return found


def _loaded(export: Export, kind: str, folder: Path) -> Any:
    """The log as its owner opens it: a CSV or Parquet file or a folder of them, a data frame, or a scan."""
    if kind == "frame":
        return gd.load(export.frame, **export.options)
    if export.files or kind == "scan":
        place = folder / "log"
        if export.files:
            place.mkdir(exist_ok=True)
            for part, rows in enumerate(export.files):
                rows.to_parquet(place / f"part-{part}.parquet", index=False)
        else:
            place = folder / "log.parquet"
            export.frame.to_parquet(place, index=False)
        return gd.scan(place, **export.options) if kind == "scan" else gd.load(place, **export.options)
    place = folder / "log.csv"
    # Text is quoted, so that a file says what is text as far as a CSV file can.
    export.frame.to_csv(place, index=False, quoting=csv.QUOTE_NONNUMERIC)
    return gd.load(place, **export.options)


def _evaluated(domain: Domain, export: Export, data: Any) -> dict[str, Any]:
    """The value of the better rule, beside the truth."""
    truth = _truth(domain, export, domain.better)
    policy = export.style(export.coding, domain.better, data)
    estimate = gd.evaluate(data, policy, discount=domain.discount, effort=EFFORT, progress=False)
    low, high = estimate.interval or (np.nan, np.nan)
    error = estimate.standard_error if estimate.standard_error is not None else np.nan
    if low <= truth <= high:
        outcome = RIGHT
    elif str(estimate.verdict) != "trust":
        outcome = NOT_TRUSTED
    else:
        outcome = MISS if abs(estimate.value - truth) <= CHANCE * error else WRONG
    figures = {"value": estimate.value, "low": low, "high": high, "truth": truth, "standard_error": error}
    return {
        "outcome": outcome,
        **{name: None if np.isnan(figure) else float(figure) for name, figure in figures.items()},
        "verdict": str(estimate.verdict),
        "reason": next(iter(estimate.reasons), None),
    }


def _selected(domain: Domain, export: Export, data: Any) -> dict[str, Any]:
    """A better and a worse rule to choose from: a defect if what is deployed is no better than what runs."""
    rules = {"better": domain.better, "worse": domain.worse}
    candidates = {name: export.style(export.coding, rule, data) for name, rule in rules.items()}
    found = gd.select(data, candidates, discount=domain.discount, effort=EFFORT, progress=False)
    runs = domain.value(domain.behavior)
    good = found.choice is None or _truth(domain, export, rules[found.choice]) > runs
    return {
        "outcome": RIGHT if good else WORSE,
        "truth": runs,
        "choice": found.choice or "what runs",
        "reason": found.reason,
    }


def _truth(domain: Domain, export: Export, rule: np.ndarray) -> float:
    """The exact value of a rule as the export has it; NaN if it takes actions that do not exist."""
    if not export.valued:
        return np.nan
    return domain.value(domain.table(rule) if export.mean is None else export.mean)


def _message(message: str, export: Export) -> dict[str, Any]:
    """Whether a refusal is short and says which field or column it is about."""
    words = {*SUBJECTS, *map(str, export.frame.columns)}
    named = any(re.search(rf"\b{re.escape(word)}", message) for word in words)
    return {"message_names_its_subject": named and len(message) <= LONGEST_MESSAGE}
