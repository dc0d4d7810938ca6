"""The results page: claim by claim, what the paper says, what was measured, the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from gradientdice.experiments.boyan.analysis import (
    best_fit_error,
    compare_final,
    exact_error,
    select,
    selected_curves,
    spread_between,
    wobble_within,
)
from gradientdice.experiments.boyan.grid import (
    DISCOUNTS,
    INITIAL_WEIGHTS,
    NORM_PENALTY,
    PAPER,
    REPRESENTATIONS,
    SIGNED,
    Scale,
    true_ratio,
)
from gradientdice.experiments.boyan.reference import REFERENCE
from gradientdice.experiments.boyan.run import Tables
from gradientdice.experiments.markdown import number, table, with_error

Curves = dict[tuple[str, str, float], np.ndarray]
GAMMAS = [f"γ = {discount:g}" for discount in DISCOUNTS]


def write_page(path: Path, tables: Tables, scale: Scale, figures: dict[str, str]) -> None:
    """Writes the page; figures maps a figure's name to its address as seen from the page."""
    path.write_text("\n\n".join(_sections(tables, scale, figures)) + "\n")


def _sections(tables: Tables, scale: Scale, figures: dict[str, str]) -> Iterator[str]:
    chosen = select(tables.runs)
    curves = selected_curves(tables, chosen)
    paper = chosen[chosen["study"] == PAPER]
    yield "# Boyan's Chain: figures 2 and 3, claim by claim"
    yield (
        f"Written by `gradientdice reproduce boyan`: {scale.runs} runs (seeds 0 to {scale.runs - 1}) of {scale.steps:,} steps "
        f"with batch size 1 for each of {len(tables.runs) // scale.runs:,} settings; {(tables.runs['study'] == PAPER).sum():,} runs are "
        "the paper's own grid. d_μ is uniform over the 26 pairs, π(a0|s) = 0.1, weights start from U(±1/√features). Learning "
        "rates 4⁻⁶ … 4⁻¹, and at γ = 1 the ridges 0, 10⁻³, 10⁻², 10⁻¹ (½ξ‖w‖²), are chosen by final error against the true τ, as in the paper: "
        "this compares learners at their best and is not a way to choose, since nobody has the true τ. Errors are means ± one standard "
        "error over runs; runs of one seed see the same transitions under every setting."
    )
    yield f"![Figure 2]({figures['figure2_tabular']})"
    yield f"![Figure 3]({figures['figure3_linear']})"
    yield "## Final MSE(τ)"
    yield from _final_errors(paper, scale)
    yield "## The claims"
    yield _claims(tables, chosen, curves)
    yield "## GradientDICE against GenDICE"
    yield _duels(curves)
    yield "## Stability"
    yield (
        "Spread is the standard deviation over runs, averaged over the last half of training: the width of the shaded bands. "
        "Wobble is the mean absolute change of one run's error from one record to the next over the same half. Smaller is more stable; each "
        "learner is at its selected setting."
    )
    yield _stability(curves)
    yield "## What the paper leaves out"
    yield from _beyond(tables, chosen, curves, figures)


def _final_errors(paper: pd.DataFrame, scale: Scale) -> Iterator[str]:
    for representation in REPRESENTATIONS:
        rows = []
        for learner in ("GradientDICE", "GenDICE", "DualDICE"):
            here = _by_discount(paper[(paper["representation"] == representation) & (paper["learner"] == learner)])
            rows.append([learner, *(with_error(row["mean"], row["standard_error"]) for row in here)])
            if scale == Scale() and (representation, learner) in REFERENCE:
                expected = REFERENCE[representation, learner]
                rows.append(["· independent trial", *(number(value, 3) for value in expected)])
        rows.append(["τ ≡ 1", *(number(float(np.mean((true_ratio(gamma) - 1) ** 2)), 3) for gamma in DISCOUNTS)])
        rows.append(
            ["GradientDICE, exact solve", *(number(exact_error(representation, gamma), 3) for gamma in DISCOUNTS)]
        )
        if representation == "linear":
            rows.append(["best fit of these features", *(number(best_fit_error(gamma), 3) for gamma in DISCOUNTS)])
        yield f"### {representation.capitalize()}\n\n" + table(["", *GAMMAS], rows)
    yield (
        "The independent trial is another implementation of the same grid, with its own seeds and its own 30 runs, so that its figures have "
        "about the same standard errors as ours. GenDICE's errors are skewed (a few runs end far out), so its means differ most between trials."
    )


def _claims(tables: Tables, chosen: pd.DataFrame, curves: Curves) -> str:
    wins = {r: [_duel(curves, r, gamma)[0] < 0 for gamma in DISCOUNTS] for r in REPRESENTATIONS}
    lost = {
        r: ", ".join(f"{g:g}" for g, won in zip(DISCOUNTS, wins[r], strict=True) if not won) or "none"
        for r in REPRESENTATIONS
    }
    steadier = {
        (r, measure.__name__): sum(
            measure(curves[r, "GradientDICE", g]) < measure(curves[r, "GenDICE", g]) for g in DISCOUNTS
        )
        for r in REPRESENTATIONS
        for measure in (spread_between, wobble_within)
    }
    all_steadier = all(count == 6 for count in steadier.values())
    dual_best = {
        r: all(
            _mean(chosen, r, "DualDICE", 0.1) < _mean(chosen, r, other, 0.1) for other in ("GradientDICE", "GenDICE")
        )
        for r in REPRESENTATIONS
    }
    shares = _diverged_shares(tables)
    largest_share = max(shares.values())
    diverged = ", ".join(f"{share:.0%} at γ = {gamma:g}" for gamma, share in shares.items())
    errors = [_mean(chosen, "tabular", "DualDICE", gamma) for gamma in DISCOUNTS[:-1]]
    penalty = {learner: _penalty_factors(chosen, learner) for learner in ("GradientDICE", "GenDICE")}
    exact_one = exact_error("tabular", 1.0)
    rows = [
        [
            "GradientDICE ends with a lower error than GenDICE in 4 of 6 tasks (table)",
            f"{sum(wins['tabular'])} of 6; GenDICE is lower at γ = {lost['tabular']}",
            _verdict(sum(wins["tabular"]) >= 4),
        ],
        [
            "… and in 5 of 6 tasks (linear)",
            f"{sum(wins['linear'])} of 6; GenDICE is lower at γ = {lost['linear']}",
            _verdict(sum(wins["linear"]) >= 5),
        ],
        [
            "GradientDICE's curves are more stable than GenDICE's in all 6 tasks, both settings",
            "; ".join(
                f"{r}: spread smaller in {steadier[r, 'spread_between']}, wobble in {steadier[r, 'wobble_within']} of 6"
                for r in REPRESENTATIONS
            ),
            _verdict(all_steadier, partly=any(count >= 4 for count in steadier.values())),
        ],
        [
            "DualDICE is best at γ = 0.1",
            "; ".join(
                f"{r}: {number(_mean(chosen, r, 'DualDICE', 0.1))} against {number(_mean(chosen, r, 'GradientDICE', 0.1))} (GradientDICE)"
                for r in REPRESENTATIONS
            ),
            _verdict(all(dual_best.values()), partly=any(dual_best.values())),
        ],
        [
            "DualDICE becomes unstable as γ grows",
            f"its error grows from {number(_mean(chosen, 'tabular', 'DualDICE', 0.1))} to {number(_mean(chosen, 'tabular', 'DualDICE', 0.9))} at γ = 0.9 and at γ = 1 it "
            f"does not learn ({number(_mean(chosen, 'tabular', 'DualDICE', 1.0), 3)}; τ ≡ 0 is its solution); share of all runs that diverge: {diverged}",
            _verdict(largest_share > 0.5, partly=errors == sorted(errors))
            + (
                ""
                if largest_share > 0.5
                else ": it gets slower, and uninformative at γ = 1, but few of its runs diverge"
            ),
        ],
        [
            "λ has little influence",
            "with λ = 0.1 or 10 for 1, retuned, "
            + "; ".join(f"{learner}'s error changes {_range(factors)}" for learner, factors in penalty.items()),
            _verdict(max(map(max, penalty.values())) < 1.5),
        ],
        [
            "at γ = 1 a ridge ξ > 0 is a must",
            f"without one the exact solve has error {number(exact_one)}, and tuned SGD prefers "
            f"ξ = {_chosen_ridge(chosen, 'tabular'):g} (table) and {_chosen_ridge(chosen, 'linear'):g} (linear)",
            _verdict(exact_one > 1e-10),
        ],
    ]
    return table(["the paper says", "measured", "verdict"], rows)


def _verdict(holds: bool, *, partly: bool = False) -> str:
    return "confirmed" if holds else ("partly" if partly else "not confirmed")


def _duels(curves: Curves) -> str:
    rows = []
    for representation in REPRESENTATIONS:
        cells = []
        for discount in DISCOUNTS:
            difference, error = _duel(curves, representation, discount)
            winner = "GradientDICE" if difference < 0 else "GenDICE"
            cells.append(f"{winner}, {number(abs(difference))} ± {number(error, 1)}")
        rows.append([representation, *cells])
    return "The lower final error, by how much, paired by seed:\n\n" + table(["", *GAMMAS], rows)


def _duel(curves: Curves, representation: str, discount: float) -> tuple[float, float]:
    return compare_final(curves[representation, "GradientDICE", discount], curves[representation, "GenDICE", discount])


def _stability(curves: Curves) -> str:
    rows = []
    for representation in REPRESENTATIONS:
        for name, measure in (("spread", spread_between), ("wobble", wobble_within)):
            for learner in ("GradientDICE", "GenDICE", "DualDICE"):
                values = [number(measure(curves[representation, learner, gamma])) for gamma in DISCOUNTS]
                rows.append([representation, name, learner, *values])
    return table(["", "", "", *GAMMAS], rows)


def _beyond(tables: Tables, chosen: pd.DataFrame, curves: Curves, figures: dict[str, str]) -> Iterator[str]:
    yield "### The closed form, given the same samples"
    yield _closed_form(tables, curves)
    yield f"![closed form]({figures['closed_form']})"
    yield "### γ = 1 without a ridge"
    yield (
        "With a table the ridge's bias is the floor of every ridged answer: 10⁻³, 10⁻² and 10⁻¹ cannot do better than "
        f"{number(exact_error('tabular', 1.0, 1e-3))}, {number(exact_error('tabular', 1.0, 1e-2), 3)} and {number(exact_error('tabular', 1.0, 1e-1), 3)}. "
        "With Boyan's features, which do not contain τ*, a small ridge happens to lower MSE(τ) a little; nothing in the data says so."
    )
    yield f"![ridge]({figures['ridge_at_discount_1']})"
    yield "### DualDICE with and without the absolute value"
    yield _signed(tables)
    yield f"![absolute value]({figures['dualdice_absolute_value']})"
    yield "### GenDICE's initial weights"
    yield _initial_weights(chosen)
    yield f"![initial weights]({figures['gendice_initial_weights']})"


def _closed_form(tables: Tables, curves: Curves) -> str:
    final = tables.closed_form[tables.closed_form["samples"] == tables.closed_form["samples"].max()]
    rows, ratios = [], []
    tabular = final[final["representation"] == "tabular"]
    sgd = [float(curves["tabular", "GradientDICE", gamma][:, -1].mean()) for gamma in DISCOUNTS]
    rows.append(["GradientDICE, SGD tuned on the truth", *(number(value, 3) for value in sgd)])
    for actions, label in (("expected", "closed form, π's probabilities"), ("sampled", "closed form, drawn actions")):
        errors = tabular[tabular["actions"] == actions].groupby("discount")["error"]
        means, standard = errors.mean(), errors.std() / np.sqrt(errors.size())
        rows.append([label, *(with_error(means[gamma], standard[gamma]) for gamma in DISCOUNTS)])
        factors = [value / means[gamma] for value, gamma in zip(sgd, DISCOUNTS, strict=True)]
        rows.append(["· times below SGD", *(f"{factor:.1f}" for factor in factors)])
        ratios.append(min(factors))
    text = (
        "The samples of each run, solved once with ξ = 0 and nothing tuned (table). The learners draw a' and a0 as the paper does; "
        "the closed form may use π's probabilities instead, as the library does on any log, or the same drawn actions.\n\n"
    )
    lowest = f"\n\nThe lowest factors are {ratios[0]:.1f} and {ratios[1]:.1f}."
    return text + table(["", *GAMMAS], rows) + lowest


def _signed(tables: Tables) -> str:
    rows = []
    for study, learner, label in ((PAPER, "DualDICE", r"\|τ\|³/3"), (SIGNED, "DualDICE τ³", "τ³/3")):
        runs = tables.runs[
            (tables.runs["study"] == study) & (tables.runs["learner"] == learner) & (tables.runs["ridge"] == 0)
        ]
        for representation in REPRESENTATIONS:
            here = runs[runs["representation"] == representation]
            share = (here["status"] != "ok").groupby(here["discount"]).mean()
            rows.append([representation, label, *(f"{share[gamma]:.0%}" for gamma in DISCOUNTS)])
    return "The share of runs that diverge, over all learning rates, ξ = 0:\n\n" + table(["", "F*", *GAMMAS], rows)


def _initial_weights(chosen: pd.DataFrame) -> str:
    gen = chosen[(chosen["learner"] == "GenDICE") & chosen["study"].isin([PAPER, INITIAL_WEIGHTS])]
    rows = []
    for representation in REPRESENTATIONS:
        for init, here in gen[gen["representation"] == representation].groupby("init", sort=False):
            rows.append(
                [representation, f"`{init}`", *(with_error(r["mean"], r["standard_error"]) for r in _by_discount(here))]
            )
    return "Final MSE(τ) at the best setting (`fan_in=None` is the number of features):\n\n" + table(
        ["", "weights", *GAMMAS], rows
    )


def _by_discount(rows: pd.DataFrame) -> list[pd.Series]:
    return [rows[rows["discount"] == discount].iloc[0] for discount in DISCOUNTS]


def _mean(chosen: pd.DataFrame, representation: str, learner: str, discount: float) -> float:
    rows = chosen[(chosen["study"] == PAPER) & (chosen["representation"] == representation)]
    return float(rows[(rows["learner"] == learner) & (rows["discount"] == discount)]["mean"].iloc[0])


def _chosen_ridge(chosen: pd.DataFrame, representation: str) -> float:
    rows = chosen[(chosen["study"] == PAPER) & (chosen["representation"] == representation)]
    return float(rows[(rows["learner"] == "GradientDICE") & (rows["discount"] == 1)]["ridge"].iloc[0])


def _diverged_shares(tables: Tables) -> dict[float, float]:
    """Which share of DualDICE's runs diverges, by discount."""
    runs = tables.runs[(tables.runs["study"] == PAPER) & (tables.runs["learner"] == "DualDICE")]
    return (runs["status"] != "ok").groupby(runs["discount"]).mean().to_dict()


def _penalty_factors(chosen: pd.DataFrame, learner: str) -> list[float]:
    """By which factors the selected error changes with another λ, over all tasks."""
    other = chosen[(chosen["study"] == NORM_PENALTY) & (chosen["learner"] == learner)]
    return [row["mean"] / _mean(chosen, row["representation"], learner, row["discount"]) for _, row in other.iterrows()]


def _range(factors: list[float]) -> str:
    return f"by a factor of {min(factors):.2g} to {max(factors):.2g} (median {np.median(factors):.2g})"
