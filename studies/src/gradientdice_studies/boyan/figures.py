"""The experiment's figures, from its tables alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # before pyplot: figures go to files, and a machine without a screen must do

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gradientdice_studies.boyan.analysis import Curves, diverged_shares, exact_error, select, selected_curves
from gradientdice_studies.boyan.grid import DISCOUNTS, INITIAL_WEIGHTS, PAPER, REPRESENTATIONS, RIDGES, SIGNED
from gradientdice_studies.boyan.run import Tables
from gradientdice_studies.frames import column, groups, kept, rows_where
from gradientdice_studies.store import ResultStore

Style = dict[str, Any]
# Okabe and Ito's palette can be distinguished with any colour vision, and in print by the dashes.
STYLES: dict[str, Style] = {
    "GradientDICE": {"color": "#0072B2", "linestyle": "-"},
    "GenDICE": {"color": "#D55E00", "linestyle": "--"},
    "DualDICE": {"color": "#009E73", "linestyle": "-."},
    "closed form": {"color": "#000000", "linestyle": "-"},
}
INIT_STYLES: list[Style] = [
    {"color": "#D55E00", "marker": "o"},
    {"color": "#E69F00", "marker": "s"},
    {"color": "#CC79A7", "marker": "D"},
]


def draw_all(store: ResultStore, tables: Tables) -> dict[str, Path]:
    """Writes every figure as PNG and PDF; name -> PNG."""
    chosen = select(tables.runs)
    curves = selected_curves(tables, chosen)
    figures = {
        "figure2_tabular": learning_curves(tables, curves, "tabular"),
        "figure3_linear": learning_curves(tables, curves, "linear"),
        "closed_form": closed_form(tables, curves),
        "ridge_at_discount_1": ridge_at_discount_1(tables),
        "dualdice_absolute_value": dualdice_absolute_value(tables, chosen),
        "gendice_initial_weights": gendice_initial_weights(chosen),
    }
    return store.write_figures(figures)


def learning_curves(tables: Tables, curves: Curves, representation: str) -> Figure:
    """Figure 2 or 3: MSE(τ) of the three learners at their selected settings, mean and one standard deviation."""
    figure, axes = _panels()
    for axis, discount in zip(axes.ravel(), DISCOUNTS, strict=True):
        for learner in ("GradientDICE", "GenDICE", "DualDICE"):
            _band(axis, tables.steps, curves[representation, learner, discount], learner)
        _finish(axis, f"γ = {discount:g}")
    title = "a table" if representation == "tabular" else "four state features per action"
    return _label(figure, axes, f"Boyan's Chain with {title}: tuned learners, {_runs(curves)} runs each", "step")


def closed_form(tables: Tables, curves: Curves) -> Figure:
    """The closed form, given the same samples as the tuned learner."""
    figure, axes = _panels()
    expected = rows_where(tables.closed_form, actions="expected", representation="tabular")
    for axis, discount in zip(axes.ravel(), DISCOUNTS, strict=True):
        _band(
            axis, tables.steps, curves["tabular", "GradientDICE", discount], "GradientDICE", "GradientDICE, tuned SGD"
        )
        rows = rows_where(expected, discount=discount)
        errors = rows.pivot(index="seed", columns="samples", values="error")
        label = "closed form, same samples, without tuning"
        _band(axis, errors.columns.to_numpy(), errors.to_numpy(), "closed form", label)
        _finish(axis, f"γ = {discount:g}")
        axis.set_xscale("log")
    return _label(
        figure, axes, "A table: tuned stochastic GradientDICE against its closed form on the same samples", "samples"
    )


def ridge_at_discount_1(tables: Tables) -> Figure:
    """At discount 1: the error with a ridge, exactly and for the learner."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    path = np.geomspace(1e-6, 1, 60)
    paper = rows_where(tables.runs, study=PAPER, discount=1, learner="GradientDICE")
    for axis, representation in zip(axes, REPRESENTATIONS, strict=True):
        axis.loglog(
            path,
            [exact_error(representation, 1.0, ridge) for ridge in path],
            label="fixed point, exact",
            **STYLES["closed form"],
        )
        zero = exact_error(representation, 1.0)
        axis.axhline(max(zero, 1e-12), color="#000000", linestyle=":", label=f"fixed point with ξ = 0: {zero:.1g}")
        here = rows_where(paper, representation=representation)
        by_ridge = [groups(rows_where(here, ridge=ridge), "learning_rate") for ridge in RIDGES]
        means = [min(column(rows, "final_error").mean() for _, rows in by_rate) for by_rate in by_ridge]
        positions = [ridge if ridge > 0 else path[0] for ridge in RIDGES]
        axis.plot(
            positions,
            means,
            "o",
            color=STYLES["GradientDICE"]["color"],
            label="SGD, best rate (leftmost: ξ = 0)",
        )
        axis.set(title=representation, xlabel="ridge ξ", ylabel="MSE(τ)")
        axis.legend(fontsize=8)
        axis.grid(alpha=0.3)
    figure.suptitle("γ = 1 needs no ridge: with a table, the bias of a ridge is a lower bound for the error")
    return figure


def dualdice_absolute_value(tables: Tables, chosen: pd.DataFrame) -> Figure:
    """DualDICE with |τ|³/3 and with τ³/3: the share of runs that diverge, and the final error."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    signed: Style = {"color": "#CC79A7", "linestyle": ":"}
    for study, learner, label, style in (
        (PAPER, "DualDICE", "|τ|³/3", STYLES["DualDICE"]),
        (SIGNED, "DualDICE τ³", "τ³/3, as in public code", signed),
    ):
        rows = rows_where(tables.runs, study=study, learner=learner, ridge=0, representation="tabular")
        shares = diverged_shares(rows)
        axes[0].plot(DISCOUNTS, [shares[gamma] for gamma in DISCOUNTS], marker="o", label=label, **style)
        best = rows_where(chosen, study=study, learner=learner, representation="tabular")
        axes[1].semilogy(best["discount"], best["mean"], marker="o", label=label, **style)
    axes[0].set(xlabel="discount γ", ylabel="share of runs that diverge, all rates", ylim=(-0.02, 1.02))
    axes[1].set(xlabel="discount γ", ylabel="MSE(τ) at the best rate")
    for axis in axes:
        axis.legend(fontsize=8)
        axis.grid(alpha=0.3)
    figure.suptitle("DualDICE with a table: the absolute value in its objective")
    return figure


def gendice_initial_weights(chosen: pd.DataFrame) -> Figure:
    """GenDICE's final error from different initial weights, beside GradientDICE's."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for axis, representation in zip(axes, REPRESENTATIONS, strict=True):
        here = rows_where(chosen, representation=representation)
        base = rows_where(here, study=PAPER, learner="GradientDICE")
        axis.errorbar(
            base["discount"],
            base["mean"],
            base["standard_error"],
            label="GradientDICE",
            capsize=2,
            **STYLES["GradientDICE"],
        )
        gen = kept(here, (here["learner"] == "GenDICE") & column(here, "study").isin([PAPER, INITIAL_WEIGHTS]))
        for style, ((init,), rows) in zip(INIT_STYLES, groups(gen, "init"), strict=True):
            label = f"GenDICE, {_init_name(init, representation)}"
            axis.errorbar(
                rows["discount"],
                rows["mean"],
                rows["standard_error"],
                label=label,
                markersize=5,
                capsize=2,
                linestyle="--",
                **style,
            )
        axis.set(title=representation, xlabel="discount γ", ylabel="MSE(τ) at the best setting", yscale="log")
        axis.legend(fontsize=8)
        axis.grid(alpha=0.3)
    figure.suptitle("GenDICE depends on its initial weights")
    return figure


def _init_name(init: str, representation: str) -> str:
    if init.startswith("ConstantInit"):
        return "w = 1"
    features = 26 if representation == "tabular" else 8
    width = init.removeprefix("UniformInit(fan_in=").removesuffix(")")
    return f"U(±1/√{features if width == 'None' else width})"


def _panels() -> tuple[Figure, np.ndarray]:
    figure, axes = plt.subplots(2, 3, figsize=(12, 6.5), layout="constrained", sharex=True)
    return figure, axes


def _band(axis: Axes, x: np.ndarray, curves: np.ndarray, learner: str, label: str | None = None) -> None:
    style = STYLES[learner]
    mean = curves.mean(axis=0)
    spread = curves.std(axis=0)
    axis.plot(x, mean, label=label or learner, linewidth=1.6, **style)
    # On a log axis a band that reaches below 0 must end somewhere: far below what the axis shows.
    axis.fill_between(x, np.maximum(mean - spread, 1e-9), mean + spread, color=style["color"], alpha=0.2, linewidth=0)


def _finish(axis: Axes, title: str) -> None:
    axis.set_title(title)
    axis.set_yscale("log")
    axis.set_ylim(bottom=min(np.min(line.get_ydata()) for line in axis.lines) / 3)
    axis.grid(alpha=0.3)


def _label(figure: Figure, axes: np.ndarray, title: str, x_label: str) -> Figure:
    for axis in axes[:, 0]:
        axis.set_ylabel("MSE(τ)")
    for axis in axes[-1]:
        axis.set_xlabel(x_label)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.suptitle(title)
    return figure


def _runs(curves: Curves) -> int:
    return len(next(iter(curves.values())))
