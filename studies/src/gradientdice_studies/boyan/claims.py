"""The paper's claims: what was measured for each, and whether that confirms it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from gradientdice_studies.boyan.analysis import (
    Curves,
    compare_final,
    diverged_shares,
    exact_error,
    spread_between,
    wobble_within,
)
from gradientdice_studies.boyan.grid import DISCOUNTS, NORM_PENALTY, PAPER, REPRESENTATIONS
from gradientdice_studies.boyan.run import Tables
from gradientdice_studies.frames import records, rows_where
from gradientdice_studies.markdown import number

PENALISED = ("GradientDICE", "GenDICE")


def claims(tables: Tables, chosen: pd.DataFrame, curves: Curves) -> dict[str, Any]:
    """The numbers and verdicts of the table of claims."""
    return {**_wins(curves), **_stability(curves), **_dual(tables, chosen), **_penalty(chosen), **_ridge(chosen)}


def duel(curves: Curves, representation: str, discount: float) -> tuple[float, float]:
    """By how much GradientDICE's final error is above GenDICE's, and the standard error."""
    return compare_final(curves[representation, "GradientDICE", discount], curves[representation, "GenDICE", discount])


def _wins(curves: Curves) -> dict[str, Any]:
    found = {}
    for representation, needed in zip(REPRESENTATIONS, (4, 5), strict=True):
        won = {gamma: duel(curves, representation, gamma)[0] < 0 for gamma in DISCOUNTS}
        found[f"{representation}_wins"] = sum(won.values())
        found[f"{representation}_lost"] = ", ".join(f"{gamma:g}" for gamma in DISCOUNTS if not won[gamma]) or "none"
        found[f"{representation}_verdict"] = _verdict(sum(won.values()) >= needed)
    return found


def _stability(curves: Curves) -> dict[str, Any]:
    counts, told = [], []
    for representation in REPRESENTATIONS:
        pairs = [[curves[representation, name, gamma] for name in PENALISED] for gamma in DISCOUNTS]
        spread = sum(spread_between(own) < spread_between(gen) for own, gen in pairs)
        wobble = sum(wobble_within(own) < wobble_within(gen) for own, gen in pairs)
        counts += [spread, wobble]
        told.append(f"{representation}: spread smaller in {spread}, wobble in {wobble} of 6")
    verdict = _verdict(all(count == 6 for count in counts), partly=any(count >= 4 for count in counts))
    return {"stability": "; ".join(told), "stability_verdict": verdict}


def _dual(tables: Tables, chosen: pd.DataFrame) -> dict[str, Any]:
    best, told = [], []
    for representation in REPRESENTATIONS:
        dual, own, gen = (_mean(chosen, representation, name, 0.1) for name in ("DualDICE", *PENALISED))
        best.append(dual < own and dual < gen)
        told.append(f"{representation}: {number(dual)} against {number(own)} (GradientDICE)")
    errors = [_mean(chosen, "tabular", "DualDICE", gamma) for gamma in DISCOUNTS]
    runs = rows_where(tables.runs, study=PAPER, learner="DualDICE")
    shares = diverged_shares(runs)
    many = max(shares.values()) > 0.5
    return {
        "dual_first": "; ".join(told),
        "dual_first_verdict": _verdict(all(best), partly=any(best)),
        "dual_errors": [number(errors[0]), number(errors[-2]), number(errors[-1], 3)],
        "dual_diverged": ", ".join(f"{shares[gamma]:.0%} at γ = {gamma:g}" for gamma in DISCOUNTS),
        "dual_many_diverge": many,
        "dual_verdict": _verdict(many, partly=errors[:-1] == sorted(errors[:-1])),
    }


def _penalty(chosen: pd.DataFrame) -> dict[str, Any]:
    """By which factors the selected error changes with another λ, over all tasks."""
    told, largest = [], 0.0
    for learner in PENALISED:
        other = records(rows_where(chosen, study=NORM_PENALTY, learner=learner))
        factors = [row["mean"] / _mean(chosen, row["representation"], learner, row["discount"]) for row in other]
        between = f"{min(factors):.2g} to {max(factors):.2g} (median {np.median(factors):.2g})"
        told.append(f"{learner}'s error changes by a factor of {between}")
        largest = max(largest, *factors)
    return {"penalty": "; ".join(told), "penalty_verdict": _verdict(largest < 1.5)}


def _ridge(chosen: pd.DataFrame) -> dict[str, Any]:
    exact = exact_error("tabular", 1.0)
    found: dict[str, Any] = {"exact_without_ridge": number(exact), "ridge_verdict": _verdict(exact > 1e-10)}
    for name in REPRESENTATIONS:
        row = _selected(chosen, name, "GradientDICE", 1.0)
        found[f"{name}_ridge"] = f"{row['ridge']:g}"
    return found


def _mean(chosen: pd.DataFrame, representation: str, learner: str, discount: float) -> float:
    return _selected(chosen, representation, learner, discount)["mean"]


def _selected(chosen: pd.DataFrame, representation: str, learner: str, discount: float) -> dict[str, Any]:
    where = {"representation": representation, "learner": learner, "discount": discount}
    return records(rows_where(chosen, study=PAPER, **where))[0]


def _verdict(holds: bool, *, partly: bool = False) -> str:
    return "confirmed" if holds else ("partly" if partly else "not confirmed")
