"""One picture: each family's trust and its coverage if trusted, before and now."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # before pyplot: figures go to files, and a machine without a screen must do

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes

from gradientdice_studies.store import ResultStore
from gradientdice_studies.traps.families import families
from gradientdice_studies.traps.summary import COVERS, HARDLY, TRUSTED, Summary, before, summaries

# Okabe and Ito's palette.
TRAP, HONEST = "#D55E00", "#0072B2"


def draw_all(store: ResultStore, frame: pd.DataFrame) -> dict[str, Path]:
    """Writes the figure as PNG and PDF; name -> PNG."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained", sharex=True, sharey=True)
    for axis, title, found in zip(axes, ("before", "now"), (before(), summaries(frame)), strict=True):
        _draw(axis, found)
        axis.set_title(title)
        axis.set_xlabel("share of the logs that were trusted")
    axes[0].set_ylabel("trusted intervals that hold the truth")
    axes[1].legend(loc="lower right", fontsize=8)
    return store.write_figures({"traps": figure})


def _draw(axis: Axes, found: dict[str, Summary]) -> None:
    """Where trust is misplaced is shaded; families without any trust lie on the left edge, at 1."""
    axis.fill_between([HARDLY, 1.02], 0, COVERS, color="#999999", alpha=0.2, linewidth=0, label="misplaced trust")
    axis.axvline(TRUSTED, color=HONEST, linestyle=":", linewidth=1)
    known = families()
    for kind, color, marker in (("trap", TRAP, "x"), ("honest", HONEST, "o")):
        some = [name for name, family in known.items() if (family.trap == "honest") == (kind == "honest")]
        for half, alpha in (("develop", 0.45), ("report", 1.0)):
            chosen = [found[name] for name in some if known[name].half == half]
            axis.scatter(
                [summary.trust for summary in chosen],
                [1.0 if summary.covered is None else summary.covered for summary in chosen],
                color=color,
                marker=marker,
                alpha=alpha,
                s=28,
                label=f"{kind}, {half} half",
            )
    axis.set(xlim=(-0.02, 1.02), ylim=(-0.03, 1.03))
    axis.grid(alpha=0.3)
