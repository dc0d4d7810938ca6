"""The second pass over a scanned log, for all questions at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gradientdice.evaluation.scan.questions import Columns, Scored
from gradientdice.log.scanning.passes import Sums
from gradientdice.problem.scan.asked import Asked, share_unit
from gradientdice.statistics.scan.score_pass import ScorePass, joint_shares, mass_sums


def scored_by_pass(
    asked: Asked, columns: Columns, first: Sums, as_states: Callable[[np.ndarray], np.ndarray]
) -> Scored:
    """The shares of all answers.

    Args:
        asked: the log.
        columns: what is scored.
        first: the sums of the first pass.
        as_states: from rows of floats to states.
    """
    unit, size = share_unit(first), int(first["rows"][0])
    found = asked.summed(
        lambda spill: ScorePass(
            spill,
            scorers=columns.scorers,
            behaviors=columns.behaviors,
            pairs=columns.pairs,
            unit=unit,
            size=size,
            starts=asked.has_first_states,
            as_states=as_states,
        )
    )
    masses = [mass_sums(found, number, size) for number in range(len(columns.scorers))]
    return Scored(joint_shares(found, columns.pairs, unit), masses, found)
