"""How a solve ended: a numerical failure is a status with causes and remedies, never a silent NaN."""

from __future__ import annotations

from enum import Enum


class Status(Enum):
    """The outcome of a solve. `status.ok` says whether the numbers can be used; `status.message` says why not."""

    OK = "The solve succeeded."
    ILL_CONDITIONED = (
        "The linear system is badly conditioned, so digits of the answer are lost. Causes: features that are nearly "
        "collinear, a policy far from the data, a discount near 1 with a slowly mixing chain. Remedies: fewer or better "
        "scaled features, a larger rank_tolerance, more data near the target policy."
    )
    SINGULAR = (
        "The linear system has no unique solution; the one of least norm is given. Causes: at discount 1, several closed "
        "classes or features without the ratio's direction; norm_penalty=0 without an intercept. Remedies: a discount "
        "below 1, norm_penalty > 0, an intercept, or a small ridge."
    )
    DIVERGED = (
        "The iterates left the range of finite numbers; the last finite ones are given. Causes: too large a learning rate, "
        "an objective that is not convex-concave (GenDICE), or one that grows faster than a square (DualDICE with power 1.5). "
        "Remedies: a smaller or decreasing learning rate, ProjectedPrimalDual, or ClosedForm, which has no learning rate."
    )
    OUTSIDE_BALL = (
        "The saddle point lies outside the given balls, so the iterates cannot reach it. Cause: too small a radius. "
        "Remedy: a larger radius, or none, in which case it is chosen from the closed form."
    )

    NOT_CONVERGED = (
        "The iteration had not come to rest when its steps were over; the last iterate is given. Causes: too few steps, a "
        "learning rate that is too small, or one so large that the noise of single steps stays in the answer; for FQE, a "
        "spectral radius of 1 or more, as happens off-policy when features are not a table. Remedies: more steps, larger "
        "batches, a decreasing learning rate, or what needs no steps: ClosedForm, or LSTDQ in place of FQE."
    )

    @property
    def ok(self) -> bool:
        """Whether the numbers can be used as they are."""
        return self is Status.OK

    @property
    def message(self) -> str:
        """What happened, its causes and its remedies."""
        return self.value

    def __repr__(self) -> str:
        return f"Status.{self.name}"

    def __str__(self) -> str:
        return self.name.lower().replace("_", " ")
