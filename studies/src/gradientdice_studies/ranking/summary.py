"""What the logs of each case show: coverage of differences, who is picked by which method, and calibration."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from scipy.stats import binomtest

from gradientdice_studies.frames import column, groups, kept, rows_where
from gradientdice_studies.ranking.case import BEHAVIOR, COPY, best_of
from gradientdice_studies.ranking.cases import CASES

# Bounds of the bins in which probabilities of being the best are compared with how often that is so.
BINS = (0.0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98, 1.0)
# Method -> the column with its values; the first deploys only what is shown to be better.
METHODS = {"select": "value", "highest value": "value", "WIS": "importance", "FQE of d3rlpy": "fitted"}
SELECT = "select"


def judged(frame: pd.DataFrame) -> pd.DataFrame:
    """The run's table with the truth: `truth`, its standard error, that of the behaviour, half and kind, and more."""
    parts = []
    for (name,), rows in groups(frame, "case"):
        case = CASES[name]()
        worth = case.worth()
        policies = column(rows, "policy")
        best_known = len(best_of({name: worth[name] for name in case.candidates})) == 1
        parts.append(
            rows.assign(
                kind=case.kind,
                half=case.half,
                truth=[worth[policy].value for policy in policies],
                truth_error=[worth[policy].error for policy in policies],
                true_baseline=worth[BEHAVIOR].value,
                no_better=[policy in case.no_better for policy in policies],
                best_known=best_known,
            )
        )
    return pd.concat(parts, ignore_index=True)


@dataclass(frozen=True)
class Coverage:
    """How often intervals hold what they are to hold.

    Attributes:
        logs: how many.
        differences: the share of paired intervals, over logs and candidates, that hold the difference.
        simultaneous: the share of logs whose simultaneous intervals all do.
        best_set: the share of logs whose best set has the best candidate.
        width: the median width of a paired interval over that of two values from logs of their own.
        two_intervals: the same over the widths of the two values' intervals together.
        truth_error: the median standard error of the truth over the interval's half-width.
        cpu_seconds: the median time that a ranking took, where that is known.
    """

    logs: int
    differences: float
    simultaneous: float
    best_set: float
    width: float
    two_intervals: float
    truth_error: float
    cpu_seconds: float

    @classmethod
    def of(cls, rows: pd.DataFrame) -> Coverage:
        """Of some logs, of one case or of several."""
        apart = _numbers(rows, "truth") - _numbers(rows, "true_baseline")
        low, high = _numbers(rows, "difference_low"), _numbers(rows, "difference_high")
        inside = (low <= apart) & (apart <= high)
        at_once = (_numbers(rows, "simultaneous_low") <= apart) & (apart <= _numbers(rows, "simultaneous_high"))
        own, unpaired = _numbers(rows, "high") - _numbers(rows, "low"), _numbers(rows, "unpaired")
        baseline = np.sqrt(np.maximum(unpaired**2 - own**2, 0.0))
        log = rows.groupby(["case", "seed"], sort=False).ngroup().to_numpy()
        best = _numbers(rows, "truth") == _highest(rows, log)
        in_set = column(rows, "in_best_set").to_numpy(dtype=bool)
        return cls(
            logs=int(log.max()) + 1,
            differences=float(inside.mean()),
            simultaneous=float(_all_of(at_once, log).mean()),
            best_set=float(_all_of(in_set | ~best, log).mean()),
            width=float(np.median((high - low) / unpaired)),
            two_intervals=float(np.median((high - low) / (own + baseline))),
            truth_error=float(np.median(2 * _numbers(rows, "truth_error") / (high - low))),
            cpu_seconds=_median_of_known(_numbers(rows, "cpu_seconds")),
        )


@dataclass(frozen=True)
class Picks:
    """What a method picks on the logs that it was given.

    Attributes:
        logs: how many.
        correlation: the mean rank correlation of its values with the truth.
        regret: the mean loss of what it deploys against the best; 1 is the distance from the behaviour to the best.
        regret_of_three: the mean loss of the best of its first three.
        false: the share of logs on which it deploys a candidate that is no better than the behaviour.
        missed: the share of logs on which it deploys nothing although a candidate is better.
        mistaken: the share of logs on which it would deploy one if it had only candidates that are no better.
    """

    logs: int
    correlation: float
    regret: float
    regret_of_three: float
    false: float
    missed: float
    mistaken: float

    @classmethod
    def of(cls, rows: pd.DataFrame, method: str) -> Picks | None:
        """Of the logs, of one case or of several, on which the method has values for all candidates; None if none."""
        found = [_pick(log, method) for _, log in groups(rows, "case", "seed")]
        known = np.array([pick for pick in found if pick is not None])
        return cls(len(known), *map(float, known.mean(axis=0))) if len(known) else None


def _pick(log: pd.DataFrame, method: str) -> tuple[float, ...] | None:
    """The figures of `Picks` for one log."""
    values, truth = _numbers(log, METHODS[method]), _numbers(log, "truth")
    if not np.isfinite(values).all():
        return None
    baseline, true_baseline = _numbers(log, "baseline")[0], _numbers(log, "true_baseline")[0]
    if method == "WIS":
        # What a time limit cut off is missing from all of its values alike: all weights of the copy are 1.
        baseline = values[column(log, "policy").to_numpy() == COPY][0]
    no_better = column(log, "no_better").to_numpy(dtype=bool)
    order = np.argsort(-values, kind="stable")
    if method == SELECT:
        chosen = np.flatnonzero(column(log, "chosen").to_numpy(dtype=bool))
        mistaken = column(log, "mistaken").to_numpy(dtype=bool).any()
    else:
        chosen = order[:1] if values[order[0]] > baseline else order[:0]
        mistaken = values[no_better].max() > baseline
    deployed = truth[chosen[0]] if len(chosen) else true_baseline
    best = max(truth.max(), true_baseline)
    scale = best - true_baseline
    return (
        _rank_correlation(values, truth),
        (best - deployed) / scale,
        (best - truth[order[:3]].max()) / scale,
        float(len(chosen) > 0 and deployed <= true_baseline),
        float(len(chosen) == 0 and truth.max() > true_baseline),
        float(mistaken),
    )


@dataclass(frozen=True)
class Bin:
    """Candidates whose probability of being the best lies within some bounds.

    Attributes:
        count: how many, over all logs.
        said: the mean probability.
        best: how many of them are the best.
    """

    count: int
    said: float
    best: int

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95% interval of the share that is the best, as if candidates were independent."""
        found = binomtest(self.best, self.count).proportion_ci(method="wilson")
        return float(found.low), float(found.high)


def calibration(rows: pd.DataFrame) -> list[Bin]:
    """Probabilities of being the best beside how often that is so, in the cases whose best candidate is known.

    Bins without candidates are left out.
    """
    rows = rows_where(rows, best_known=True)
    if not len(rows):
        return []
    said = _numbers(rows, "probability_best")
    log = rows.groupby(["case", "seed"], sort=False).ngroup().to_numpy()
    best = _numbers(rows, "truth") == _highest(rows, log)
    place = np.clip(np.searchsorted(BINS, said, side="left") - 1, 0, len(BINS) - 2)
    bins = [place == number for number in range(len(BINS) - 1)]
    return [Bin(int(own.sum()), float(said[own].mean()), int(best[own].sum())) for own in bins if own.any()]


def of_half(rows: pd.DataFrame, half: str, kinds: Iterable[str] = ("table", "control")) -> pd.DataFrame:
    """The rows of one half of the cases, and of some kinds."""
    return kept(rows, (column(rows, "half") == half) & column(rows, "kind").isin(list(kinds)))


def _median_of_known(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else float("nan")


def _numbers(rows: pd.DataFrame, name: str) -> Float[np.ndarray, " n"]:
    return column(rows, name).to_numpy(dtype=float)


def _highest(rows: pd.DataFrame, log: np.ndarray) -> Float[np.ndarray, " n"]:
    """For each row the largest true value of its log's candidates."""
    highest = np.full(int(log.max()) + 1, -np.inf)
    np.maximum.at(highest, log, _numbers(rows, "truth"))
    return highest[log]


def _all_of(holds: Bool[np.ndarray, " n"], log: np.ndarray) -> Bool[np.ndarray, " logs"]:
    """For each log whether it holds for all of its rows."""
    return np.bincount(log, ~holds) == 0


def _rank_correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Spearman's; 0 where one of them is constant."""
    first, second = (pd.Series(values).rank().to_numpy() for values in (one, other))
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])
