"""The numbers of the results page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from gradientdice.estimators.saddle.gen_dice import GenDICE
from gradientdice.estimators.saddle.gradient_dice import GradientDICE
from gradientdice_studies.frames import groups, kept, records
from gradientdice_studies.hard_example.descent import WRONG_POINT, gradient_at, ratio_curvature_at
from gradientdice_studies.hard_example.figures import draw_all
from gradientdice_studies.hard_example.run import Scale, run
from gradientdice_studies.markdown import number, table
from gradientdice_studies.steps import Steps

CLOSE = 1e-3


def context(frame: pd.DataFrame, scale: Scale) -> dict[str, Any]:
    """The values of the template's names."""
    return {"rate": scale.rate, "at_the_point": _at_the_point(), "starts": _starts(frame, scale)}


def _at_the_point() -> str:
    learners = (GenDICE(1.0), GradientDICE(1.0))
    slopes = [number(float(np.abs(gradient_at(learner, WRONG_POINT)).max())) for learner in learners]
    curvatures = [", ".join(f"{value:g}" for value in ratio_curvature_at(e, WRONG_POINT)) for e in learners]
    rows = [["largest partial derivative", *slopes], ["curvature in the minimiser's variables", *curvatures]]
    return table(["at u = 0, f = 0, η = −1", "GenDICE", "GradientDICE"], rows)


def _starts(frame: pd.DataFrame, scale: Scale) -> str:
    rows = []
    for (learner, size), path in groups(frame, "learner", "perturbation"):
        final, close = records(path)[-1], records(kept(path, path["error"] < CLOSE))
        reached = close[0]["step"] if close else "never"
        rows.append([learner, f"{size:g}", f"({final['ratio_1']:.4f}, {final['ratio_2']:.4f})", reached])
    header = ["learner", "distance from the point", f"τ after {scale.steps:,} steps"]
    return table([*header, f"steps until MSE(τ) < {CLOSE:g}"], rows)


STEPS = Steps(full=Scale(), run=run, draw=draw_all, context=context)
