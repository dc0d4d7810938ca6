"""Descent-ascent of both learners from starts at and near the wrong point."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pandas as pd

from gradientdice.base.provenance import provenance
from gradientdice.estimators.saddle.gen_dice import GenDICE
from gradientdice.estimators.saddle.gradient_dice import GradientDICE
from gradientdice_studies.hard_example.descent import RATE, STEPS, descend
from gradientdice_studies.store import ResultStore


@dataclass(frozen=True)
class Scale:
    """How far from the wrong point the starts are, and the learning rate and number of steps from there."""

    perturbations: tuple[float, ...] = (0.0, 1e-8, 1e-6, 1e-4, 1e-2)
    rate: float = RATE
    steps: int = STEPS


def run(folder: Path, scale: Scale, *, force: bool = False) -> tuple[ResultStore, pd.DataFrame]:
    """Runs the experiment and writes its table: one row per learner, start and step."""
    store = ResultStore(folder, "hard-example", asdict(scale), force=force)
    frames = []
    for name, estimator in (("GenDICE", GenDICE(1.0)), ("GradientDICE", GradientDICE(1.0))):
        for size in scale.perturbations:
            start = (jnp.array([size, 0.5 * size]), jnp.zeros(2), jnp.asarray(-1.0))
            path = descend(estimator, start, scale.steps, scale.rate)
            columns = {"learner": name, "perturbation": size, "step": np.arange(1, scale.steps + 1)}
            frames.append(pd.DataFrame({**columns, "ratio_1": path[:, 0], "ratio_2": path[:, 1]}))
    frame = pd.concat(frames, ignore_index=True)
    frame["error"] = ((frame["ratio_1"] - 1) ** 2 + (frame["ratio_2"] - 1) ** 2) / 2
    frame.attrs["provenance"] = provenance(rate=scale.rate, steps=scale.steps)
    store.write(folder / "hard_example.parquet", frame.to_parquet)
    store.write(folder / "hard_example.csv", frame.to_csv)
    return store, frame
