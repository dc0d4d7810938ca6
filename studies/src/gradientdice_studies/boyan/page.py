"""The numbers of the results page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from gradientdice_studies.boyan.analysis import (
    Curves,
    best_fit_error,
    diverged_shares,
    exact_error,
    select,
    selected_curves,
    spread_between,
    wobble_within,
)
from gradientdice_studies.boyan.claims import claims, duel
from gradientdice_studies.boyan.figures import draw_all
from gradientdice_studies.boyan.grid import (
    DISCOUNTS,
    FULL,
    INITIAL_WEIGHTS,
    LEARNERS,
    PAPER,
    QUICK,
    REPRESENTATIONS,
    SIGNED,
    Representation,
    Scale,
    true_ratio,
)
from gradientdice_studies.boyan.reference import REFERENCE
from gradientdice_studies.boyan.run import Tables, run
from gradientdice_studies.frames import column, groups, kept, records, rows_where
from gradientdice_studies.markdown import number, table, with_error
from gradientdice_studies.steps import Steps

GAMMAS = [f"γ = {discount:g}" for discount in DISCOUNTS]


def context(tables: Tables, scale: Scale) -> dict[str, Any]:
    """The values of the template's names."""
    chosen = select(tables.runs)
    curves = selected_curves(tables, chosen)
    closed_form, lowest = _closed_form(tables, curves)
    return {
        "runs": scale.runs,
        "steps": f"{scale.steps:,}",
        "settings": f"{len(tables.runs) // scale.runs:,}",
        "paper_runs": f"{len(rows_where(tables.runs, study=PAPER)):,}",
        "final_errors": {name: _final_errors(chosen, name, scale) for name in REPRESENTATIONS},
        "claims": claims(tables, chosen, curves),
        "duels": _duels(curves),
        "stability": _stability(curves),
        "closed_form": closed_form,
        "lowest_factors": lowest,
        "ridge_errors": [number(exact_error("tabular", 1.0, 10.0**-k), 2 if k == 3 else 3) for k in (3, 2, 1)],
        "diverged": _diverged(tables),
        "initial_weights": _initial_weights(chosen),
    }


def _final_errors(chosen: pd.DataFrame, representation: Representation, scale: Scale) -> str:
    rows = []
    for learner in LEARNERS:
        here = rows_where(chosen, study=PAPER, representation=representation, learner=learner)
        rows.append([learner, *_errors_by_discount(here)])
        if scale == Scale() and (representation, learner) in REFERENCE:
            expected = REFERENCE[representation, learner]
            rows.append(["· independent trial", *(number(value, 3) for value in expected)])
    rows.append(["τ ≡ 1", *(number(float(np.mean((true_ratio(gamma) - 1) ** 2)), 3) for gamma in DISCOUNTS)])
    exact = [number(exact_error(representation, gamma), 3) for gamma in DISCOUNTS]
    rows.append(["GradientDICE, exact solve", *exact])
    if representation == "linear":
        rows.append(["best fit of these features", *(number(best_fit_error(gamma), 3) for gamma in DISCOUNTS)])
    return table(["", *GAMMAS], rows)


def _errors_by_discount(rows: pd.DataFrame) -> list[str]:
    found = {row["discount"]: row for row in records(rows)}
    return [with_error(found[gamma]["mean"], found[gamma]["standard_error"]) for gamma in DISCOUNTS]


def _duels(curves: Curves) -> str:
    rows = []
    for representation in REPRESENTATIONS:
        cells = []
        for discount in DISCOUNTS:
            difference, error = duel(curves, representation, discount)
            winner = "GradientDICE" if difference < 0 else "GenDICE"
            cells.append(f"{winner}, {number(abs(difference))} ± {number(error, 1)}")
        rows.append([representation, *cells])
    return table(["", *GAMMAS], rows)


def _stability(curves: Curves) -> str:
    rows = []
    for representation in REPRESENTATIONS:
        for name, measure in (("spread", spread_between), ("wobble", wobble_within)):
            for learner in LEARNERS:
                values = [number(measure(curves[representation, learner, gamma])) for gamma in DISCOUNTS]
                rows.append([representation, name, learner, *values])
    return table(["", "", "", *GAMMAS], rows)


def _closed_form(tables: Tables, curves: Curves) -> tuple[str, list[str]]:
    """The table, and the lowest factor between SGD's error and that of each closed form."""
    frame = tables.closed_form
    final = rows_where(frame, representation="tabular", samples=column(frame, "samples").max())
    sgd = {gamma: float(curves["tabular", "GradientDICE", gamma][:, -1].mean()) for gamma in DISCOUNTS}
    rows, lowest = [["GradientDICE, SGD tuned on the truth", *(number(value, 3) for value in sgd.values())]], []
    for actions, label in (("expected", "closed form, π's probabilities"), ("sampled", "closed form, drawn actions")):
        errors = {
            gamma: column(rows_where(final, actions=actions, discount=gamma), "error").to_numpy(dtype=float)
            for gamma in DISCOUNTS
        }
        means = {gamma: float(found.mean()) for gamma, found in errors.items()}
        standard = {gamma: float(found.std(ddof=1) / np.sqrt(len(found))) for gamma, found in errors.items()}
        factors = [sgd[gamma] / means[gamma] for gamma in DISCOUNTS]
        rows.append([label, *(with_error(means[gamma], standard[gamma]) for gamma in DISCOUNTS)])
        rows.append(["· times below SGD", *(f"{factor:.1f}" for factor in factors)])
        lowest.append(f"{min(factors):.1f}")
    return table(["", *GAMMAS], rows), lowest


def _diverged(tables: Tables) -> str:
    """The share of DualDICE's runs that diverge, with and without the absolute value."""
    rows = []
    for study, learner, label in ((PAPER, "DualDICE", r"\|τ\|³/3"), (SIGNED, "DualDICE τ³", "τ³/3")):
        for representation in REPRESENTATIONS:
            runs = rows_where(tables.runs, study=study, learner=learner, ridge=0, representation=representation)
            shares = diverged_shares(runs)
            rows.append([representation, label, *(f"{shares[gamma]:.0%}" for gamma in DISCOUNTS)])
    return table(["", "F*", *GAMMAS], rows)


def _initial_weights(chosen: pd.DataFrame) -> str:
    rows = []
    studies = kept(chosen, column(chosen, "study").isin([PAPER, INITIAL_WEIGHTS]))
    for representation in REPRESENTATIONS:
        here = rows_where(studies, learner="GenDICE", representation=representation)
        rows += [[representation, f"`{init}`", *_errors_by_discount(found)] for (init,), found in groups(here, "init")]
    return table(["", "weights", *GAMMAS], rows)


STEPS = Steps(full=FULL, quick=QUICK, run=run, draw=draw_all, context=context)
