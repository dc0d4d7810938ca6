"""Posterior intervals beside BayesDICE's on a bandit and on a small table: how often they hold the truth, how wide.

BayesDICE here is a compact NumPy version of its tabular form (Yang, Dai, Nachum, Tucker and Schuurmans, Offline Policy
Selection under Uncertainty, 2020, with the mean-field Gaussian and the unit prior of the authors' public code). Over
the dual ν of the flow constraints, with n rows, N_j rows of pair j, residuals R_j = Σ_rows (γ x̄' − x) / √N_j and
K = Σ_j R_j R_jᵀ, it minimises (1−γ) n bᵀν + ½ νᵀKν + KL(q ‖ N(m, I)) over Gaussians q with independent coordinates:
the mean is m = −(1−γ) n K⁻¹b and the variances 1 / (1 + K_ii). A draw of ν is a ratio R_jᵀν / √N_j at each pair.

    python benchmarks/bayes_dice.py [logs]
"""

import sys

import numpy as np

import gradientdice as gd

DRAWS = 1000


def bayes_dice(data, target, discount, rng):
    """Draws of the value."""
    states, actions = target.shape
    size, n = states * actions, len(data)
    pair = data.states * actions + data.actions
    counts = np.bincount(pair, minlength=size).astype(float)
    residual = np.zeros((size, size))
    np.add.at(residual, (pair, pair), -1.0)
    for action in range(actions):
        np.add.at(residual, (data.next_states * actions + action, pair), discount * target[data.next_states, action])
    scale = np.sqrt(np.maximum(counts, 1e-8))
    residual /= scale
    start = np.bincount(data.initial_states, minlength=states) / len(data.initial_states)
    initial = (1 - discount) * n * (start[:, None] * target).ravel()
    form = residual @ residual.T
    mean = -np.linalg.lstsq(form, initial, rcond=1e-10)[0]
    deviation = 1 / np.sqrt(1 + np.diag(form))
    dual = mean + deviation * rng.standard_normal((DRAWS, size))
    ratio = dual @ residual / scale
    return ratio @ np.bincount(pair, data.rewards, minlength=size) / n


def bandit(rng, noise):
    """Two arms that pay 0 or 1, or with normal noise; the target pulls the better one in three of four steps."""
    means, target = np.array([0.4, 0.6]), np.array([[0.25, 0.75]])

    def log(n):
        actions = rng.integers(0, 2, n)
        rewards = means[actions] + noise * rng.normal(size=n) if noise else (rng.random(n) < means[actions]) * 1.0
        zeros = np.zeros(n, dtype=int)
        return gd.Transitions(zeros, actions, rewards, zeros, initial_states=[0])

    return log, target, float(target[0] @ means)


def table(rng, discount):
    """Five states, two actions."""
    own = np.random.default_rng(4)
    mdp = gd.mdp.TabularMDP(own.dirichlet(np.ones(5), size=(5, 2)), own.normal(size=(5, 2)), own.dirichlet(np.ones(5)))
    target = own.dirichlet(np.ones(2), size=5)
    return lambda n: mdp.sample(n, np.full((5, 2), 0.1), rng), target, mdp.value(target, discount)


def main(logs=300):
    discount, rng = 0.9, np.random.default_rng(0)
    problems = {
        "bandit, rewards 0 and 1": bandit(rng, 0.0),
        "bandit, noise 0.1": bandit(rng, 0.1),
        "bandit, noise 2": bandit(rng, 2.0),
        "random 5×2": table(rng, discount),
    }
    print(
        "| problem | rows | BayesDICE | Bayesian bootstrap | Dirichlet model | `evaluate` |\n|---|---|---|---|---|---|"
    )
    for name, (make, target, truth) in problems.items():
        policy = gd.TabularPolicy(target)
        for rows in (50, 200, 1000):
            found = {kind: [] for kind in ("BayesDICE", "bootstrap", "dirichlet", "evaluate")}
            for _ in range(logs):
                data = make(rows)
                draws = bayes_dice(data, target, discount, rng)
                found["BayesDICE"].append(np.quantile(draws, [0.025, 0.975]))
                for model in ("bootstrap", "dirichlet"):
                    own = gd.posterior(data, policy, discount=discount, model=model, draws=DRAWS)
                    found[model].append(own.interval())
                found["evaluate"].append(gd.evaluate(data, policy, gd.GradientDICE(discount)).interval)
            cells = []
            for ends in found.values():
                low, high = np.array(ends).T
                cells.append(f"{np.mean((low < truth) & (truth < high)):.3f}, {np.mean(high - low):.3g}")
            print(f"| {name} | {rows} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
