"""GenDICE with the χ² divergence: min over τ = g(·) ≥ 0, max over f and η, of

    (1−γ) E_μ0[f] + γ E[τ f'] − E[τ (f + ¼f²)] + λ (E[ητ − η] − ½η²) + ½ξ‖w‖².

The positive map g makes the problem non-convex even for tables: gradients can vanish at wrong points
(`gradientdice reproduce hard-example`). There is no closed form but for tables: there its least value, 0, is at the
solution of the flow equations.

References:
    Zhang, Dai, Li and Schuurmans, GenDICE: Generalized Offline Estimation of Stationary Values, ICLR 2020.
    φ*(f) = f + ¼f² is the conjugate of φ(x) = (x − 1)²; the GradientDICE paper prints φ = max xf − ½φ*, without cause.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from gradientdice.base.errors import InputError, require_number
from gradientdice.dice.saddle import LinearEstimator, Terms
from gradientdice.estimators.saddle.estimator import SaddleEstimator
from gradientdice.estimators.saddle.gradient_dice import GradientDICE
from gradientdice.estimators.saddle.positivity import Exponential, Positivity, Softplus, Square


@dataclass(frozen=True)
class GenDICE(SaddleEstimator):
    """GENeralized stationary DIstribution Correction Estimation.

    Attributes:
        discount: γ in [0, 1].
        norm_penalty: λ.
        ridge: ξ in ½ξ‖w‖².
        positivity: the map that keeps τ nonnegative: Square(), Exponential() or Softplus().
    """

    discount: float
    norm_penalty: float = 1.0
    ridge: float = 0.0
    positivity: Positivity = field(default_factory=Square)

    reference = "Zhang, Dai, Li and Schuurmans, ICLR 2020"
    ratio_minimises: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_number("discount", self.discount, low=0, high=1)
        require_number("norm_penalty", self.norm_penalty, low=0)
        require_number("ridge", self.ridge, low=0)
        if not isinstance(self.positivity, (Square, Exponential, Softplus)):
            raise InputError(f"positivity must be Square(), Exponential() or Softplus(), not {self.positivity!r:.60}.")

    def over_table(self) -> LinearEstimator | None:
        """GradientDICE, unless a ridge pulls elsewhere.

        With a table the ratio that solves the flow equations is d̂/d̂_μ, which is not negative. GenDICE's objective is a
        divergence from those equations and has its least value, 0, there.
        """
        unique = self.ridge == 0 and (self.discount < 1 or self.norm_penalty > 0)
        return GradientDICE(self.discount) if unique else None

    def ratio(self, raw: Any) -> Any:
        """τ = g(raw) ≥ 0."""
        return self.positivity(raw)

    def objective(self, terms: Terms) -> Any:
        """The saddle objective of one transition, without the ridge."""
        tau, f, f_next, f_initial, eta = terms
        gamma, lam = self.discount, self.norm_penalty
        flow = (1 - gamma) * f_initial + gamma * tau * f_next - tau * (f + 0.25 * f**2)
        return flow + lam * (eta * tau - eta - 0.5 * eta**2)
