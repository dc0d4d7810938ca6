"""How the default for networks was found: optimisers on small MDPs with known values, shown as indicators.

`python benchmarks/neural_defaults.py` prints the table in docs/networks.md.
"""

from __future__ import annotations

import numpy as np
import optax

import gradientdice as gd

STEPS = 4_000
SOLVERS = {
    "SGD, rate 0.05": {"rate": 0.05, "optimizer": None},
    "SGD, rate 0.01": {"rate": 0.01, "optimizer": None},
    "Adam, rate 0.001": {"rate": 1e-3, "optimizer": optax.adam(1.0)},
    "Adam without momentum, rate 0.001": {"rate": 1e-3, "optimizer": optax.adam(1.0, b1=0.0)},
    "Adam without momentum, rate 0.003": {"rate": 3e-3, "optimizer": optax.adam(1.0, b1=0.0)},
}


def log(seed: int) -> tuple[gd.mdp.TabularMDP, np.ndarray, gd.Transitions, gd.DiscretePolicy]:
    rng = np.random.default_rng(seed)
    mdp = gd.mdp.TabularMDP(rng.dirichlet(np.ones(4), size=(4, 2)), rng.normal(size=(4, 2)), np.full(4, 0.25))
    target = rng.dirichlet(np.ones(2), size=4)
    data, eye = mdp.sample(4000, np.full((4, 2), 1 / 8), rng), np.eye(4)
    shown = gd.Transitions(
        eye[data.states], data.actions, data.rewards, eye[data.next_states], initial_states=eye[data.initial_states]
    )
    return mdp, target, shown, gd.DiscretePolicy(lambda s: target[s.argmax(axis=1)], 2)


def main() -> None:
    print(
        "| solver (half a cosine, iterates averaged) | GradientDICE: median error | mean ratio off by | GenDICE: median error | mean ratio off by |"
    )
    print("|---|---|---|---|---|")
    for name, options in SOLVERS.items():
        solver = gd.PrimalDual(
            STEPS, gd.Cosine(options["rate"], STEPS), 128, optimizer=options["optimizer"], average=0.99
        )
        cells = []
        for kind in (gd.GradientDICE, gd.GenDICE):
            errors, ratios = [], []
            for seed in range(3):
                mdp, target, data, policy = log(seed)
                for discount in (0.8, 1.0):
                    estimate = gd.evaluate(data, policy, kind(discount), functions=gd.MLP((32,)), solver=solver)
                    errors.append(abs(estimate.value - mdp.value(target, discount)) / data.rewards.std())
                    ratios.append(abs(estimate.diagnostics.mean_ratio_error))
            cells += [f"{np.median(errors):.3f}", f"{np.median(ratios):.3f}"]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
