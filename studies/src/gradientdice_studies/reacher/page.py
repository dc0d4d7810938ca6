"""The numbers of the results page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from gradientdice_studies.frames import column, groups, records
from gradientdice_studies.markdown import number, table
from gradientdice_studies.reacher.analysis import Chosen, by_mean_ratio, by_truth
from gradientdice_studies.reacher.figures import draw_all
from gradientdice_studies.reacher.grid import LEARNERS
from gradientdice_studies.reacher.protocols import DISCOUNTS, truth, truth_episodes
from gradientdice_studies.reacher.run import QUICK, Results, Scale, run
from gradientdice_studies.steps import Steps

Selected = dict[tuple[str, float], Chosen]


def context(results: Results, scale: Scale) -> dict[str, Any]:
    """The values of the template's names."""
    grid, own = results.grid, results.own
    paper = by_truth(grid, "paper")
    return {
        "rows": f"{scale.rows:,}",
        "seeds": scale.seeds,
        "truth_episodes": f"{truth_episodes():,}",
        "finals": _finals(paper, by_mean_ratio(grid, "paper")),
        "claims": _claims(paper),
        "ratios": _ratios(paper),
        "logs": column(own, "log").nunique(),
        "own": _own(own, by_truth(grid, "corrected")),
    }


def _finals(paper: Selected, fair: Selected) -> str:
    rows = []
    for discount in DISCOUNTS:
        row = [f"{discount:g}", f"{truth('paper')[discount][0]:.4f}"]
        for learner in LEARNERS:
            best, other = paper[learner, discount], fair[learner, discount]
            row.append(f"{number(best.final)} (α = {best.setting.learning_rate:g}, λ = {best.setting.penalty:g})")
            row.append(number(other.final))
        rows.append(row)
    header = ["γ", "truth"]
    for learner in LEARNERS:
        header += [f"{learner}, chosen by the true error", "chosen without the truth"]
    return table(header, rows)


def _claims(paper: Selected) -> dict[str, Any]:
    """What was measured for each claim of the paper, and whether that confirms it."""
    own, gen, dual = ({g: paper[learner, g] for g in DISCOUNTS} for learner in LEARNERS)
    factors = {g: gen[g].final / own[g].final for g in DISCOUNTS}
    alike = sum(0.5 <= factor <= 2 for factor in factors.values())
    steadier = sum(own[g].errors[:, -1].std() < gen[g].errors[:, -1].std() for g in DISCOUNTS)
    smoother = sum(own[g].roughness < gen[g].roughness for g in DISCOUNTS)
    dual_smoother = sum(dual[g].roughness < own[g].roughness for g in DISCOUNTS)
    dual_worse = sum(dual[g].final > own[g].final for g in DISCOUNTS)
    last = float(np.abs(dual[1.0].mean_ratio[:, -1]).max())
    both = dual_smoother >= 4 and dual_worse >= 4
    return {
        "factors": ", ".join(f"{number(factor)} (γ = {g:g})" for g, factor in factors.items()),
        "alike": alike,
        "alike_verdict": _verdict(alike >= 5),
        "steadier": steadier,
        "steadier_verdict": _verdict(steadier >= 5),
        "smoother": smoother,
        "dual_smoother": dual_smoother,
        "dual_worse": dual_worse,
        "dual_verdict": "confirmed" if both else "not confirmed as a whole",
        "dual_last": number(last),
        "dual_last_verdict": _verdict(last < 0.05),
    }


def _verdict(holds: bool) -> str:
    return "confirmed" if holds else "not confirmed"


def _ratios(paper: Selected) -> str:
    rows = []
    for discount in DISCOUNTS:
        row = [f"{discount:g}"]
        for learner in LEARNERS:
            ratio = paper[learner, discount].mean_ratio
            row.append(f"{number(float(np.median(ratio[:, 0])))} → {number(float(np.median(ratio[:, -1])))}")
        rows.append(row)
    return table(["γ", *(f"{learner}, median run" for learner in LEARNERS)], rows)


def _own(own: pd.DataFrame, corrected: Selected) -> str:
    rows = []
    for (discount,), group in groups(own, "discount"):
        first, known = records(group)[0], column(group, "truth")
        theirs = corrected["GradientDICE", discount].final
        ours = (0.5 * (column(group, "value") - known) ** 2).mean()
        low, high = column(group, "low"), column(group, "high")
        rows.append(
            [
                f"{discount:g}",
                f"{first['truth']:.4f} ± {number(first['truth_error'], 1)}",
                number(ours),
                number(theirs),
                f"{theirs / ours:.0f}",
                f"{known.between(low, high).sum()} of {len(group)}",
                number((high - low).median()),
            ]
        )
    header = ["γ", "truth", "MSE(ρ), ours", "GradientDICE at its best", "times larger"]
    return table([*header, "truth inside our 95% interval", "median width"], rows)


STEPS = Steps(full=Scale(), quick=QUICK, run=run, draw=draw_all, context=context)
