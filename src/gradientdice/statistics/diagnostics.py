"""The evidence for or against trusting an estimate, and the verdict drawn from it."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Float

from gradientdice.dice.optimality import (
    DRIFT_ALARM,
    DRIFT_CAUTION,
    UNSOLVED_ALARM,
    UNSOLVED_CAUTION,
)
from gradientdice.dice.solution import Solution
from gradientdice.log.transitions import Transitions
from gradientdice.statistics.checks import Check, Verdict, above, below, worst
from gradientdice.statistics.evidence import Evidence
from gradientdice.statistics.mass import MassSums

MORE_STEPS = "more steps, larger batches or a decreasing learning rate; the closed form needs none of them"

# How far the mean of a ratio may be from 1, and how much of the policy's steps may be missing from the log.
MEAN_CAUTION, MEAN_ALARM = 0.05, 0.25
UNLOGGED_CAUTION, UNLOGGED_ALARM = 0.001, 0.05
# On the control tasks that methods are developed on, answers are right up to a share of 0.18 (reacher) and often wrong
# from 0.17 to 0.26 (hopper).
LEFT_CAUTION, LEFT_ALARM = 0.2, 0.5
# On the same tasks, 4 logs of 10⁴ rows each, the factor is 2.6 to 3.1 for inverted-double-pendulum at discount 0.99,
# where every answer is wrong; 2.0 in one log of cart-pole, which is right, and below 1.5 in all others with ends.
OUTLIVED_CAUTION, OUTLIVED_ALARM = 1.5, 2.5


@dataclass(frozen=True)
class Diagnostics:
    """Figures about the ratio and the solve.

    Attributes:
        effective_sample_size: (Σ|τ|)² / Στ², the number of equally weighted rows that carry as much.
        effective_share: the same as a share of the rows.
        mean_ratio_error: E[τ] − 1, the absorbing state included, which would be 0.
        negative_share: the share of the ratio's absolute mass that is negative.
        largest_share: the share of the absolute mass on the heaviest 0.1% of rows (at least one row).
        tail_index: Hill's estimate for the ratio's upper tail: below 2 its variance is in doubt.
        thin_mass: the share of the target's mass on rows whose ratio exceeds 20: places with little data.
        condition_number: of the linear system.
        rank: the feature directions kept.
        num_features: of how many.
        bellman_misfit: how far the features' Q misses the data, in standard deviations of noise; 0 for a table.
        flow_residual: how far the ratio is from conserving the flow on rows that its fit did not see, in standard
            deviations of what noise alone would give; None where the fit saw all rows. It has no threshold: a
            doubly robust answer forgives what the ratio misses where Q fits.
        unlogged: with a table, the share of the policy's steps that the log does not contain (an action that is never
            logged in that state, or a state without rows); None with other functions.
        left: where Q is that of a learned model, the share of its simulated steps that would have left the log's range;
            else None.
        outlived: there, by what factor ratio and model disagree on how much of the policy's time is before an end; else
            None.
        unsolved: the share of the objective that a learner had left to go when its steps were over; None where that is
            not known.
        drift: how far a learner's value still moved, in standard deviations of the rewards; None where `unsolved` says
            it better, and for answers that were not learned in steps.
        learned: whether the ratio was learned in steps.
    """

    effective_sample_size: float
    effective_share: float
    mean_ratio_error: float
    negative_share: float
    largest_share: float
    tail_index: float
    thin_mass: float
    condition_number: float
    rank: int
    num_features: int
    bellman_misfit: float
    flow_residual: float | None = None
    unlogged: float | None = None
    left: float | None = None
    outlived: float | None = None
    unsolved: float | None = None
    drift: float | None = None
    learned: bool = False

    def checks(self) -> list[Check]:
        """Every figure that has thresholds, judged."""
        checks = [
            above(
                "effective sample size",
                self.effective_sample_size,
                200,
                30,
                "rows' worth of evidence once weighted by the ratio",
                "log more data near the target policy",
            ),
            below(
                "mean ratio − 1",
                abs(self.mean_ratio_error),
                MEAN_CAUTION,
                MEAN_ALARM,
                "how far the ratio is from averaging to 1",
                MORE_STEPS if self.learned else "an intercept, more features, or more data",
            ),
            below(
                "negative mass",
                self.negative_share,
                0.05,
                0.25,
                "share of the ratio's mass that is negative, as no true ratio is",
                MORE_STEPS if self.learned else "fewer or better features, more data",
            ),
            below(
                "mass on the heaviest 0.1% of rows",
                self.largest_share,
                0.2,
                0.5,
                "how much hangs on a few rows",
                "log more data where the target policy goes",
            ),
            below(
                "mass where the log is thin",
                self.thin_mass,
                0.2,
                0.6,
                "share of the target's mass where it is over 20 times denser than the log",
                "log more data there",
            ),
            below(
                "Bellman misfit",
                self.bellman_misfit,
                3.0,
                10.0,
                "by how many standard deviations of noise the features miss the data",
                "more or finer features, or the default choice",
            ),
            below(
                "condition number",
                self.condition_number,
                1e10,
                1e14,
                "how much the solve magnifies rounding",
                "fewer or better scaled features, a larger rank_tolerance",
            ),
        ]
        if self.unsolved is not None:
            checks.append(
                below(
                    "objective left to go",
                    self.unsolved,
                    UNSOLVED_CAUTION,
                    UNSOLVED_ALARM,
                    "share of the objective that the learner had not yet covered when its steps were over",
                    MORE_STEPS,
                )
            )
        if self.drift is not None:
            checks.append(
                below(
                    "drift of the value",
                    self.drift,
                    DRIFT_CAUTION,
                    DRIFT_ALARM,
                    "how far the learner's value moved in its last fifth, in standard deviations of the rewards",
                    MORE_STEPS,
                )
            )
        if self.unlogged is not None:
            checks.append(
                below(
                    "steps that were never logged",
                    self.unlogged,
                    UNLOGGED_CAUTION,
                    UNLOGGED_ALARM,
                    "share of the policy's steps with an action that is never logged in that state",
                    "log more data there, or use features that generalise",
                )
            )
        if self.left is not None:
            checks.append(
                below(
                    "simulated steps outside the log",
                    self.left,
                    LEFT_CAUTION,
                    LEFT_ALARM,
                    "share of the policy's steps in the learned model that would have left the log's range",
                    "log more data where the target policy goes",
                )
            )
        if self.outlived is not None:
            checks.append(
                below(
                    "time before an end, ratio against model",
                    self.outlived,
                    OUTLIVED_CAUTION,
                    OUTLIVED_ALARM,
                    "by what factor the ratio and the learned model disagree on how much of the policy's time is "
                    "before an end",
                    "log more data of episodes that go on for as long as the policy's do",
                )
            )
        return checks

    @property
    def verdict(self) -> Verdict:
        """The worst of the checks."""
        return worst(self.checks())

    def to_dict(self) -> dict[str, object]:
        """Plain JSON types; infinite figures as None."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        plain = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in plain.items()}
        return {**plain, "checks": [check.to_dict() for check in self.checks()]}


def diagnose(
    data: Transitions,
    ratio: Float[np.ndarray, " n"],
    evidence: Evidence,
    solution: Solution | None,
) -> Diagnostics:
    """Measures a ratio over a log, and the solve that found it.

    Args:
        data: the log.
        ratio: the ratio to its rows.
        evidence: what the estimator knows beside it, its mean ratio among it.
        solution: the solve behind it, if there is one.
    """
    density = ratio if evidence.density is None else evidence.density
    return diagnose_mass(MassSums.of(data.row_weights * ratio, density), evidence, solution)


def diagnose_mass(mass: MassSums, evidence: Evidence, solution: Solution | None) -> Diagnostics:
    """The same from sums over the rows."""
    stats = {} if solution is None else solution.stats
    params = int(stats.get("num_features", 0 if solution is None else len(solution.ratio_params)))
    return Diagnostics(
        effective_sample_size=mass.effective_size,
        effective_share=mass.effective_size / mass.count,
        mean_ratio_error=(1.0 if evidence.mean_ratio is None else evidence.mean_ratio) - 1,
        negative_share=mass.share(mass.negative),
        largest_share=mass.largest_share,
        tail_index=mass.tail_index,
        thin_mass=mass.share(mass.thin),
        condition_number=float(stats.get("condition_number", 1.0)),
        rank=int(stats.get("rank", params)),
        num_features=params,
        bellman_misfit=evidence.misfit or 0.0,
        flow_residual=evidence.flow,
        unlogged=evidence.unlogged,
        left=evidence.left,
        outlived=evidence.outlived,
        unsolved=stats.get("unsolved_share"),
        drift=stats.get("drift"),
        learned=solution is not None and solution.curve is not None,
    )
