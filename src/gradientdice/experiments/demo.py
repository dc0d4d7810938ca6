"""`make demo`: Boyan's Chain evaluated from a sample of logged transitions, beside the truth."""

from __future__ import annotations

import numpy as np

from gradientdice.estimators import DualDICE, GradientDICE
from gradientdice.experiments.boyan.grid import DATA_DIST, TARGET, chain
from gradientdice.functions.tabular import Tabular
from gradientdice.moments import Moments
from gradientdice.policies import TabularPolicy
from gradientdice.solvers.closed_form import solve


def main() -> None:
    """Prints the estimate, the truth and the behaviour's mean for several discounts."""
    rng = np.random.default_rng(0)
    print("30,000 logged transitions of Boyan's Chain; the target policy takes action 1 in nine of ten steps.\n")
    print("discount  logged mean  GradientDICE  DualDICE (χ²)     truth  MSE(ratio)")
    for discount in (0.5, 0.9, 0.99, 1.0):
        mdp = chain(discount)
        data = mdp.sample(30_000, DATA_DIST, rng)
        moments = Moments.from_transitions(data, TabularPolicy(TARGET), Tabular(13, 2))
        solution = solve(GradientDICE(discount), moments)
        value = solution.ratio_params @ moments.reward
        dual = "τ ≡ 0"
        if discount < 1:
            dual = f"{solve(DualDICE(discount, power=2.0), moments).ratio_params @ moments.reward:.4f}"
        error = np.mean((solution.ratio_params.reshape(13, 2) - mdp.ratio(TARGET, discount, DATA_DIST)) ** 2)
        truth = mdp.value(TARGET, discount)
        print(f"{discount:8g} {data.rewards.mean():12.4f} {value:13.4f} {dual:>14} {truth:9.4f} {error:11.1e}")


if __name__ == "__main__":
    main()
