"""Independent NumPy versions of the stochastic learners: the paper's printed updates, as corrected."""

import numpy as np

import gradientdice as gd


def gradient_dice(x, x_next, x0, w, kappa, eta, gamma, lam, xi, alpha):
    """Section 4 of the paper, with the update as printed (the erratum is in G_{t+1}, not here)."""
    tau = x @ w
    delta = (1 - gamma) * x0 + gamma * tau * x_next - tau * x
    kappa_new = kappa + alpha * (delta - (x @ kappa) * x)
    eta_new = eta + alpha * lam * (tau - 1 - eta)
    w_new = w - alpha * (gamma * (x_next @ kappa) * x - (x @ kappa) * x + lam * eta * x + xi * w)
    return w_new, kappa_new, eta_new


def gen_dice_square(x, x_next, x0, w, kappa, eta, gamma, lam, xi, alpha):
    """Gradients of the chi-square GenDICE objective with tau = (x.w)^2, by hand."""
    u, f, f_next = x @ w, x @ kappa, x_next @ kappa
    tau = u**2
    kappa_new = kappa + alpha * ((1 - gamma) * x0 + gamma * tau * x_next - tau * (1 + f / 2) * x)
    eta_new = eta + alpha * lam * (tau - 1 - eta)
    slope = gamma * f_next - (f + f**2 / 4) + lam * eta
    w_new = w - alpha * (slope * 2 * u * x + xi * w)
    return w_new, kappa_new, eta_new


def dual_dice_cubic(x, x_next, x0, w, kappa, eta, gamma, lam, xi, alpha):
    """DualDICE with |tau|^3/3: f descends, tau ascends."""
    tau, f, f_next = x @ w, x @ kappa, x_next @ kappa
    kappa_new = kappa - alpha * (tau * (x - gamma * x_next) - (1 - gamma) * x0)
    w_new = w + alpha * ((f - gamma * f_next - abs(tau) * tau) * x - xi * w)
    return w_new, kappa_new, eta


def expected_update_matrices(moments_x, gamma, lam, xi):
    """G and g of the expected GradientDICE update d <- d + alpha (G d + g), d = [kappa; w; eta]."""
    x, data, chain, mu0 = moments_x
    k = x.shape[1]
    d = np.diag(data)
    a = x.T @ (np.eye(len(data)) - gamma * chain.T) @ d @ x
    c = x.T @ d @ x
    v = x.T @ data
    big = np.zeros((2 * k + 1, 2 * k + 1))
    big[:k, :k], big[:k, k : 2 * k] = -c, -a
    big[k : 2 * k, :k], big[k : 2 * k, k : 2 * k], big[k : 2 * k, -1] = a.T, -xi * np.eye(k), -lam * v
    big[-1, k : 2 * k], big[-1, -1] = lam * v, -lam
    small = np.concatenate([(1 - gamma) * x.T @ mu0, np.zeros(k), [-lam]])
    return big, small


# Estimators with their updates as printed.
CASES = [
    (gd.GradientDICE(0.9, 0.7, 0.3), gradient_dice),
    (gd.GradientDICE(1.0, 2.0, 0.0), gradient_dice),
    (gd.GenDICE(0.9, 0.7, 0.3), gen_dice_square),
    (gd.DualDICE(0.9, ridge=0.3), dual_dice_cubic),
]
