"""The full Boyan grid against an independent trial's numbers, within Monte Carlo error."""

import numpy as np
import pytest

from gradientdice_studies.boyan.analysis import select
from gradientdice_studies.boyan.grid import DISCOUNTS, FULL, PAPER
from gradientdice_studies.boyan.reference import REFERENCE
from gradientdice_studies.boyan.run import run
from gradientdice_studies.frames import rows_where


@pytest.mark.slow
def test_final_errors_agree_with_an_independent_trial(tmp_path):
    _, tables = run(tmp_path / "boyan", FULL)
    chosen = select(rows_where(tables.runs, study=PAPER))
    distances = []
    for (representation, learner), expected in REFERENCE.items():
        rows = chosen[(chosen["representation"] == representation) & (chosen["learner"] == learner)].set_index(
            "discount"
        )
        for discount, value in zip(DISCOUNTS, expected, strict=True):
            row = rows.loc[discount]
            # Both trials have 30 runs, so about the same error each; the reference is printed to two digits.
            error = np.hypot(np.sqrt(2) * row["standard_error"], 0.05 * value)
            distances.append(abs(row["mean"] - value) / error)
    distances = np.array(distances)
    assert distances.max() < 4 and np.mean(distances > 2) < 0.1
