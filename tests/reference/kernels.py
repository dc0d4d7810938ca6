"""Independent NumPy versions of the kernel estimators: n × n kernel matrices, plain programmes, plain loops.

Rows are tables: states and actions as integers, ends spelled out as one more state (below discount 1) or as the mean
over the initial states (at 1).
"""

import numpy as np
from scipy.optimize import minimize


def tables(data, target, discount):
    """x, x', x0, r, weights of a log, one-hot over pairs, with the absorbing state's row at the end."""
    states, actions = target.shape
    ended = np.zeros(len(data), bool) if data.terminated is None else data.terminated
    weights = np.ones(len(data)) if data.weights is None else data.weights
    x = np.eye(states * actions)[data.states * actions + data.actions]
    following = np.stack([np.kron(np.eye(states)[t], target[t]) for t in data.next_states])
    start = np.stack([np.kron(np.eye(states)[s], target[s]) for s in data.start_states])
    if discount == 1:
        following[ended] = start.mean(axis=0)
        return x, following, start.mean(axis=0), data.rewards, weights / weights.sum()
    if not ended.any():
        return x, following, start.mean(axis=0), data.rewards, weights / weights.sum()
    following[ended] = 0
    x = np.pad(x, ((0, 1), (0, 1)))
    following = np.pad(following, ((0, 1), (0, 1)))
    following[:-1][ended, -1] = 1
    x[-1, -1] = following[-1, -1] = 1
    weights = np.append(weights, weights.sum() / 9)  # a tenth of all
    return x, following, np.append(start.mean(axis=0), 0), np.append(data.rewards, 0), weights / weights.sum()


def fitted_q_radius(data, target, discount, features):
    """The spectral radius of fitted Q iteration's update: it converges below 1. Q is 0 after an end."""
    x, x_next, _, _, weights = tables(data, target, discount)
    pairs = target.size
    y, y_next = x[:, :pairs] @ features, x_next[:, :pairs] @ features
    step = np.linalg.solve(y.T @ (weights[:, None] * y), y.T @ (weights[:, None] * y_next))
    return discount * np.abs(np.linalg.eigvals(step)).max()


def mwl(x, z, z_next, z0, rewards, weights, discount):
    """w = Xα: min wᵀDHDw − 2(1−γ) wᵀD⟨δ, z0⟩ with H the n × n matrix of inner products of δ; E[w] = 1 at discount 1."""
    delta = z - discount * z_next
    dx = weights[:, None] * x
    quadratic, linear = dx.T @ (delta @ delta.T) @ dx, (1 - discount) * dx.T @ (delta @ z0)
    if discount < 1:
        alpha = np.linalg.solve(quadratic, linear)
    else:
        mean = dx.sum(axis=0)
        k = len(mean)
        system = np.block([[quadratic, mean[:, None]], [mean[None], np.zeros((1, 1))]])
        alpha = np.linalg.solve(system, np.append(np.zeros(k), 1.0))[:k]
    ratio = x @ alpha
    return float(weights @ (ratio * rewards)), ratio


def mql(x, x_next, x0, z, rewards, weights, discount):
    """θ = (ZᵀKZ)⁻¹ZᵀKr with the n × n kernel matrix K = zzᵀ, weighted; at discount 1 with ρ as one more column."""
    change = x - discount * x_next
    if discount == 1:
        change = np.column_stack([change[:, 1:], np.ones(len(x))])  # one parameter pinned to 0
    kernel = (weights[:, None] * z) @ (weights[:, None] * z).T
    theta = np.linalg.solve(change.T @ kernel @ change, change.T @ kernel @ rewards)
    return float(theta[-1]) if discount == 1 else float((1 - discount) * x0 @ theta)


def black_box_matrix(z, z_next):
    n = len(z)
    return np.array(
        [
            [z_next[i] @ z_next[j] - z_next[i] @ z[j] - z[i] @ z_next[j] + z[i] @ z[j] for j in range(n)]
            for i in range(n)
        ]
    )


def simplex_programme(matrix, start):
    """min wᵀGw on the simplex by sequential quadratic programming."""
    n = len(matrix)
    found = minimize(
        lambda w: 1e3 * w @ matrix @ w,
        start,
        jac=lambda w: 2e3 * matrix @ w,
        bounds=[(0, None)] * n,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(n)},
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-15},
    )
    return found.x


def fitted_q(data, target, discount, iterations):
    """A table of means of r + γV(s'), filled in again and again."""
    states, actions = target.shape
    weights = np.ones(len(data)) if data.weights is None else data.weights
    ended = np.zeros(len(data), bool) if data.terminated is None else data.terminated
    q = np.zeros((states, actions))
    pair = (data.states, data.actions)
    total = np.zeros_like(q)
    np.add.at(total, pair, weights)
    level = 0.0
    for _ in range(iterations):
        v = np.sum(target * q, axis=1)
        start = v[data.start_states].mean()
        after = np.where(ended, start if discount == 1 else 0.0, v[data.next_states])
        sums = np.zeros_like(q)
        np.add.at(sums, pair, weights * (data.rewards + discount * after))
        q = np.divide(sums, total, out=np.zeros_like(q), where=total > 0)
        if discount == 1:
            level = float((total * q).sum() / total.sum())
            q = q - level
    v = np.sum(target * q, axis=1)
    return level if discount == 1 else float((1 - discount) * v[data.start_states].mean())


def lagrangian(x, x_next, x0, rewards, weights, discount, alpha_nu, alpha_zeta, alpha_r, norm, regularised):
    """The saddle point from the raw normal equations; `regularised` marks the rows that the regularisers count."""
    delta = x - discount * x_next
    dx = weights[:, None] * x
    a, v, c = delta.T @ dx, dx.sum(axis=0), dx.T @ rewards
    gram = dx.T @ (regularised[:, None] * x)
    k = len(v)
    system = np.zeros((2 * k + norm, 2 * k + norm))
    system[:k, :k], system[:k, k : 2 * k] = alpha_zeta * gram, a.T
    system[k : 2 * k, :k], system[k : 2 * k, k : 2 * k] = a, -alpha_nu * gram
    right = np.concatenate([alpha_r * c, (1 - discount) * x0])
    if norm:
        system[:k, -1] = system[-1, :k] = v
        right = np.append(right, 1.0)
    solved = np.linalg.lstsq(system, right, rcond=1e-13)[0]
    w, kappa, lam = solved[:k], solved[k : 2 * k], solved[-1] if norm else 0.0
    dual = (1 - discount) * x0 @ kappa + lam
    return c @ w, dual, dual + c @ w - kappa @ a @ w - lam * v @ w


def positive_lagrangian(x, x_next, x0, rewards, weights, discount, alpha_nu, alpha_zeta, alpha_r, regularised):
    """ζ ≥ 0 over a table, E[ζ] = 1 and α_ν > 0: with ν maximised out, a programme in ζ alone."""
    delta = x - discount * x_next
    dx = weights[:, None] * x
    a, v, c = delta.T @ dx, dx.sum(axis=0), dx.T @ rewards
    gram = np.diag(dx.T @ (regularised[:, None] * x))
    b = (1 - discount) * x0

    def loss(w):
        left = a @ w - b
        return left @ (left / gram) / (2 * alpha_nu) - alpha_r * c @ w + 0.5 * alpha_zeta * w @ (gram * w)

    def slope(w):
        return a.T @ ((a @ w - b) / gram) / alpha_nu - alpha_r * c + alpha_zeta * gram * w

    found = minimize(
        loss,
        np.ones(len(v)),
        jac=slope,
        bounds=[(0, None)] * len(v),
        constraints={"type": "eq", "fun": lambda w: v @ w - 1, "jac": lambda w: v},
        method="SLSQP",
        options={"maxiter": 5000, "ftol": 1e-16},
    )
    return float(c @ found.x)
