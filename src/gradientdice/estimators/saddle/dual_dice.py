"""DualDICE: min over f, max over τ, of

    E[(f − γf') τ] − E[F*(τ)] − (1−γ) E_μ0[f] − ½ξ‖w‖²,   F(x) = |x|^p / p,   F*(τ) = |τ|^q / q,   1/p + 1/q = 1.

p = 3/2 gives |τ|³/3, the choice of its authors; p = 2 is the χ² choice, which has a closed form when τ and f
are linear. At γ = 1 the answer is τ ≡ 0 and says nothing.

References:
    Nachum, Chow, Dai and Li, DualDICE: Behavior-Agnostic Estimation of Discounted Stationary Distribution
    Corrections, NeurIPS 2019. Public code that writes τ³/3 without the absolute value has an objective that is
    unbounded above in τ < 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from gradientdice.base.errors import InputError, require_number
from gradientdice.dice.saddle import Adjoint, LeastSquares, LinearEstimator, Terms, WhitenedMoments
from gradientdice.estimators.needs import require_discount
from gradientdice.estimators.saddle.estimator import SaddleEstimator


@dataclass(frozen=True)
class DualDICE(SaddleEstimator):
    """Dual stationary DIstribution Correction Estimation.

    Attributes:
        discount: γ in [0, 1]; meaningful below 1.
        power: p > 1; 1.5 is the original choice, 2 the χ² choice.
        ridge: ξ, a penalty on the ratio's parameters.
    """

    discount: float
    power: float = 1.5
    ridge: float = 0.0

    reference = "Nachum, Chow, Dai and Li, NeurIPS 2019"
    discounted_only = True
    refusal = "At discount 1 DualDICE's answer is a ratio of 0 everywhere: use GradientDICE."
    ratio_minimises: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_number("discount", self.discount, low=0, high=1)
        require_number("power", self.power, low=1, open_low=True)
        require_number("ridge", self.ridge, low=0)

    @property
    def solves_flow(self) -> bool:
        """With a table its first-order condition in f is the flow equations."""
        return self.power == 2 and self.ridge == 0 and self.discount < 1

    def over_table(self) -> LinearEstimator | None:
        """The χ² choice: the first-order condition in f is the flow equations, whatever the power."""
        if self.ridge > 0 or self.discount == 1:
            return None
        return self if self.power == 2 else replace(self, power=2.0)

    def ratio(self, raw: Any) -> Any:
        """τ is the function's output itself."""
        return raw

    def objective(self, terms: Terms) -> Any:
        """The saddle objective of one transition, without the ridge."""
        tau, f, f_next, f_initial, _ = terms
        return (f - self.discount * f_next) * tau - self.conjugate(tau) - (1 - self.discount) * f_initial

    def conjugate(self, tau: Any) -> Any:
        """F*(τ) = |τ|^q / q."""
        q = self.power / (self.power - 1)
        # A whole exponent is a few multiplications; any other is a call of pow.
        return abs(tau) ** (int(q) if q == int(q) else q) / q

    def least_squares(self, m: WhitenedMoments) -> LeastSquares:
        """For p = 2: κ̄ = (ĀĀᵀ)⁻¹(1−γ)b̄ and w̄ = Āᵀκ̄, that is Āw̄ = (1−γ)b̄."""
        require_discount(self)
        if self.ridge > 0:
            raise InputError("DualDICE's closed form takes no ridge: use ridge=0 or PrimalDual.")
        if self.power != 2:
            raise InputError(
                f"DualDICE has a closed form for power=2 only, not {self.power:g}: use DualDICE(power=2) or PrimalDual."
            )
        return LeastSquares(m.bellman, m.initial)

    def critic(
        self, m: WhitenedMoments, ratio_params: Float[np.ndarray, " r"]
    ) -> tuple[Float[np.ndarray, " r"], float]:
        """κ̄ with Āᵀκ̄ = w̄; DualDICE has no η."""
        return np.linalg.lstsq(m.bellman.T, ratio_params, rcond=None)[0], 0.0

    def adjoint(
        self,
        m: WhitenedMoments,
        inverse: Callable[[Float[np.ndarray, " r"]], Float[np.ndarray, " r"]],
        reward: Float[np.ndarray, " r"],
        critic: Float[np.ndarray, " r"],
        norm_multiplier: float,
    ) -> Adjoint:
        """The ratio solves Āw̄ = (1−γ)b̄ alone, so that the value depends on the data through p = Ā⁻ᵀc, LSTDQ's Q."""
        p = np.linalg.lstsq(m.bellman.T, reward, rcond=None)[0]
        return Adjoint(np.zeros_like(p), np.zeros_like(p), p, 0.0, 0.0)
