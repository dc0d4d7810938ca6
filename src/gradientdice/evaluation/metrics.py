"""An estimate as plain numbers: for trackers of experiments, and as a row of a table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gradientdice.statistics.checks import Verdict

if TYPE_CHECKING:
    from gradientdice.evaluation.estimate import Estimate

# The verdict as a number that is larger where it is better.
TRUST = {Verdict.DO_NOT_TRUST: 0.0, Verdict.CAUTION: 1.0, Verdict.TRUST: 2.0}


def metrics(estimate: Estimate) -> dict[str, float]:
    """The figures that are known; those that are not, and infinite ones, are left out.

    The behaviour's value is left out too while it is not computed.
    """
    low, high = estimate.interval or (None, None)
    behavior = estimate.behavior if estimate.behavior_side.is_known else None
    diagnostics = estimate.diagnostics
    found = {
        "value": estimate.value,
        "low": low,
        "high": high,
        "standard_error": estimate.standard_error,
        "sampling_error": estimate.sampling_error,
        "total": estimate.total,
        "behavior_value": None if behavior is None else behavior.value,
        "behavior_mean": estimate.behavior_mean,
        "effective_sample_size": None if diagnostics is None else diagnostics.effective_sample_size,
        "num_rows": estimate.num_rows,
        "verdict": TRUST[estimate.verdict],
    }
    return {name: float(value) for name, value in found.items() if value is not None and math.isfinite(value)}
