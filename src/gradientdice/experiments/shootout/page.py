"""The results page of the shootout, and the guide for choosing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from gradientdice.experiments.markdown import number, table
from gradientdice.experiments.shootout.analysis import (
    CELL,
    beside_best,
    errors,
    picks,
    prepared,
    problem_name,
    significance,
    whole,
)
from gradientdice.experiments.shootout.run import CROSS_FITTED, LEARNED, OWN, PROBLEMS, Scale

NEAR, SURE = 1.1, 2.0
# The log of this one does not show the state: no estimator that models what it shows can be right.
HIDDEN = "model-fail"


def write_page(path: Path, frame: pd.DataFrame, scale: Scale, figures: dict[str, str]) -> None:
    """Writes the page."""
    frame = prepared(frame)
    found = errors(frame)
    text = [
        "# Every estimator on every benchmark",
        _intro(frame, scale),
        "## At a glance",
        f"![factors]({figures['factors']})",
        "*How many times the best estimator's root mean squared error each one has: the median over a task's sizes and overlaps, best estimators on top. Empty: not applicable, or it did not answer every log of any cell.*",
        "## What do you have? Then use this",
        _guide(frame, found),
        "## Error against size",
        f"![size]({figures['size']})",
        "*Root mean squared error against the number of transitions, with the benchmark's own behaviour policy. \"cross-fitted\" is the doubly robust answer from GradientDICE's own pair.*",
        "## Error against overlap",
        f"![overlap]({figures['overlap']})",
        "*The same at the middle size, against the share of the behaviour's choices that are the target's own.*",
        "## Is the closed form as good as the best?",
        _own(frame, found),
        "## Choosing without the truth",
        _choosing(frame),
        "## Do the intervals cover, and how long does it take?",
        _coverage(frame, found),
        "## All errors",
        "Root mean squared error with the benchmark's own behaviour policy, at each size. A dash: not applicable; in brackets: how many of the logs were answered, if not all.",
        *_tables(found),
    ]
    path.write_text("\n\n".join(text) + "\n")


def _intro(frame: pd.DataFrame, scale: Scale) -> str:
    logs = frame.groupby("problem")["seed"].nunique()
    fewer = ", ".join(f"{count} for {problem_name(name)}" for name, count in logs.items() if count < scale.seeds)
    shares = ", ".join(f"{overlap:g}" for overlap in scale.overlaps)
    return (
        f"Written by `gradientdice reproduce shootout`: {len(logs)} benchmarks, {frame['estimator'].nunique()} estimators with their defaults, logs of up to three sizes, overlaps {shares} (the share of the behaviour's choices that are "
        f"the target's own), {scale.seeds} logs a cell{' (' + fewer + ')' if fewer else ''}; {frame[CELL + ['seed']].drop_duplicates().shape[0]:,} logs in all. The truth of the tabular benchmarks is exact, that of the three control problems by Monte Carlo. "
        "All estimators of a benchmark get the same functions: a table in which logged actions stand in for those never logged, Baird's own eight features an action, or 100 random Fourier features. Tabular logs are episodes of 100 steps (500 for Taxi), which a time limit cuts and does not end, "
        "with noise of deviation 0.1 on the rewards. GenDICE and DualDICE with power 1.5 are solved exactly with a table (Taxi and PageRank are left out, where they would be GradientDICE's number again); with features they have no closed form and are learned, "
        f"in {LEARNED.steps:,} steps of {LEARNED.batch_size} transitions at learning rate {LEARNED.learning_rate:g} everywhere ([Boyan's Chain](boyan.md) and [Reacher](reacher.md) have them at many)."
    )


def _guide(frame: pd.DataFrame, found: pd.DataFrame) -> str:
    answered = whole(found)
    best = beside_best(found)
    tabular = best[
        best["problem"].isin([key for key in PROBLEMS if key not in (HIDDEN, "cart-pole", "pendulum", "reacher")])
    ]

    def median_factor(estimator: str, problems: list[str]) -> float:
        cells = answered[answered["problem"].isin(problems)]
        least = cells.groupby(CELL)["rmse"].min()
        own = cells[cells["estimator"] == estimator].set_index(CELL)["rmse"]
        return float((own / least).median())

    markov = sorted(set(tabular["problem"]))
    hidden = answered[answered["problem"] == HIDDEN].groupby("estimator")["rmse"].median().sort_values()
    sequential = {name: median_factor(name, markov) for name in ("WPDIS", "WDR", "MAGIC", "PDIS")}
    states = {name: median_factor(name, markov) for name in ("GEM", "BCH")}
    rows = [
        [
            "few or many whole-number states, which say all that matters for what comes next",
            "`gd.evaluate(data, policy, discount=γ)`: GradientDICE in closed form over a table",
            f"its error is {_times(median_factor(OWN, markov))} times the best one's in the median cell; knowing the behaviour does not help there (GEM {_times(states['GEM'])}, BCH {_times(states['BCH'])})",
        ],
        *_thin(answered),
        [
            "continuous states or actions",
            "the same call: kernel features are chosen from the data, the answer is cross-fitted and doubly robust",
            "with features fixed beforehand, as here, cross-fitting fails on small logs of CartPole and pendulum and the plain closed form degrades less; [features chosen from the data](continuous.md), which is the default, do not have that problem at 10⁵ transitions",
        ],
        [
            "a log whose states do **not** say all that matters, short episodes, and the behaviour's probabilities",
            "`gd.WDR(γ)` or `gd.WPDIS(γ)`",
            f"ModelFail: error {number(hidden.get('WPDIS', np.nan))} (WPDIS) and {number(hidden.get('WDR', np.nan))} (WDR) against {number(hidden.get(OWN, np.nan))}: a model of what the log shows is wrong there, at any size",
        ],
        [
            "long episodes and importance weights",
            "not the weights alone",
            ", ".join(f"{name} {_times(value)}" for name, value in sequential.items()) + " times the best one's error in the median tabular cell",
        ],
        [
            "the average reward (discount 1)",
            "`gd.evaluate(data, policy, discount=1.0)`",
            "DualDICE, GEM and everything over trajectories do not apply; no ridge is needed",
        ],
        [
            "no behaviour probabilities, several behaviour policies, or loose transitions",
            "any of GradientDICE, GenDICE, DualDICE, LSTDQ, MWL, MQL, FQE, DRL",
            "with a table they are one number, DRL nearly; with features GenDICE and DualDICE with power 1.5 must be learned, and FQE need not converge (CartPole)",
        ],
    ]  # fmt: skip
    return table(["you have", "use", "because"], rows)


def _thin(answered: pd.DataFrame) -> list[list[str]]:
    """The guide's row for a table of which many pairs are missing, from Taxi's smallest log."""
    taxi = answered[(answered["problem"] == "taxi") & (answered["overlap"] == 0)]
    if not len(taxi):
        return []
    smallest = taxi[taxi["rows"] == taxi["rows"].min()].set_index(["discount", "estimator"])["rmse"]
    told = [
        f"γ = {discount:g}: GradientDICE {number(smallest[discount, OWN])}, "
        + ", ".join(f"{name} {number(smallest[discount, name])}" for name in ("GEM", "COPTD", "BCH") if (discount, name) in smallest)
        for discount in sorted(taxi["discount"].unique())
    ]  # fmt: skip
    return [
        [
            'the same, but so few rows that the policy often takes actions never logged in that state (the verdict is then "do not trust"), and the behaviour\'s probabilities',
            "`gd.GEM(γ)`, at discount 1 `gd.BCH(1.0)` or `gd.COPTD(1.0)`",
            f"they need to see states, not pairs; Taxi with {int(taxi['rows'].min()):,} rows for 12,000 pairs, {'; '.join(told)}",
        ]
    ]  # fmt: skip


def _times(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"


def _own(frame: pd.DataFrame, found: pd.DataFrame) -> str:
    best = beside_best(found)
    tabular = best[~best["problem"].isin(["cart-pole", "pendulum", "reacher"])]
    markov = tabular[tabular["problem"] != HIDDEN]
    near = markov["factor"] <= NEAR
    above = [
        (row, significance(frame, tuple(row[name] for name in CELL), row["best"]))
        for _, row in markov[~near].iterrows()
    ]
    sure = sum(gap > SURE for _, gap in above)
    lines = [
        f"GradientDICE in closed form over a table is within 10% of the error of the best estimator in {int(near.sum())} of {len(markov)} cells of the tabular benchmarks with a Markov state (all sizes, overlaps and discounts; the best is picked cell by cell from about twenty after the fact, and a root mean squared error over 20 logs is itself known to about 16%). "
        f"The others are below; log by log the difference of the squared errors is more than two standard errors in {sure} of {len(above)}.",
    ]
    if above:
        rows = [
            [problem_name(row["problem"]), f"{row['discount']:g}", f"{row['rows']:,}", f"{row['overlap']:g}", number(row["own"]), f"{row['best']} {number(row['least'])}", f"{row['factor']:.2f}", f"{gap:.1f}"]
            for row, gap in sorted(above, key=lambda entry: -entry[0]["factor"])
        ]  # fmt: skip
        lines.append(
            table(
                ["benchmark", "γ", "transitions", "overlap", "GradientDICE", "best", "factor", "standard errors"], rows
            )
        )
    hidden = tabular[tabular["problem"] == HIDDEN]
    if len(hidden):
        lines.append(
            f"ModelFail is another matter: its log shows one observation for all states, and every estimator that takes it for a state is wrong at any size (factor {number(hidden['factor'].min(), 2)} to {number(hidden['factor'].max(), 3)}). Nothing in the log says so; one must know."
        )
    return "\n\n".join(lines)


def _choosing(frame: pd.DataFrame) -> str:
    chosen = picks(frame)
    rows = []
    for (problem, discount), group in chosen.groupby(["problem", "discount"], sort=False):
        names = frame[(frame["problem"] == problem) & (frame["discount"] == discount) & frame["chosen"]][
            "estimator"
        ].value_counts()
        rows.append(
            [
                problem_name(problem),
                f"{discount:g}",
                number(group["factor"].median(), 3),
                number(group["factor"].max(), 3),
                ", ".join(f"{name} {count}" for name, count in names.items()),
            ]
        )
    total = chosen["factor"].median()
    return (
        f"`gd.compare` marks one answer by held-out Bellman loss and precision, without the truth. Its error is {total:.2f} times that of the cell's best estimator in the median cell.\n\n"
        + table(["benchmark", "γ", "median factor", "largest", "picked (logs)"], rows)
    )


def _coverage(frame: pd.DataFrame, found: pd.DataFrame) -> str:
    markov = frame[frame["problem"] != HIDDEN]
    rows = []
    order = found.groupby("estimator")["seconds"].median().sort_values().index
    for name in order:
        own = markov[(markov["estimator"] == name) & markov["value"].notna()]
        if not len(own):
            continue
        with_interval = own[own["low"].notna()]
        rows.append(
            [
                name,
                f"{with_interval['inside'].mean():.0%}" if len(with_interval) else "no interval",
                "–" if name == CROSS_FITTED else number(own["seconds"].median()),
                "–" if name == CROSS_FITTED else number(own["seconds"].max()),
            ]
        )
    own = markov[(markov["estimator"] == OWN) & markov["low"].notna()]
    verdicts = own.groupby("verdict")["inside"].agg(["mean", "count"])
    said = ", ".join(
        f'{verdicts.loc[name, "mean"]:.0%} of {verdicts.loc[name, "count"]:,} where it says "{name}"'
        for name in ("trust", "caution", "do not trust")
        if name in verdicts.index
    )
    return (
        "Over all logs of all benchmarks but ModelFail. An interval knows what sampling does, not what features or missing pairs do; the verdict does, in part: "
        f"GradientDICE's interval covers in {said}.\n\n"
        + table(["estimator", "95% interval covers", "median seconds", "longest"], rows)
    )


def _tables(found: pd.DataFrame) -> list[str]:
    parts = []
    plain = found[found["overlap"] == found["overlap"].min()]
    for (problem, discount), group in plain.groupby(["problem", "discount"], sort=False):
        sizes = sorted(group["rows"].unique())
        rows = []
        for name in group["estimator"].unique():
            own = group[group["estimator"] == name].set_index("rows")
            if own["answered"].sum() == 0:
                continue
            rows.append([name, *(_cell(own.loc[size]) for size in sizes)])
        rows.sort(key=lambda row: (str(row[-1]).startswith("–"), "(" in str(row[-1]), _first_number(row[-1])))
        parts.append(f"### {problem_name(problem)}, γ = {discount:g}")
        parts.append(table(["estimator", *(f"{size:,}" for size in sizes)], rows))
    return parts


def _cell(row: pd.Series) -> str:
    if row["answered"] == 0:
        return "–"
    more = "" if row["answered"] == row["logs"] else f" ({row['answered']} of {row['logs']})"
    return number(row["rmse"]) + more


def _first_number(cell: str) -> float:
    try:
        return float(str(cell).split()[0].replace("∞", "inf"))
    except ValueError:
        return np.inf
