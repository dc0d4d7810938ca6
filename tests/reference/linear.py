"""Independent NumPy versions of linear estimators, from raw matrices: X (pairs, K), d, P, mu0, r."""

import numpy as np


def matrices(mdp, target, data_dist, features):
    data = np.asarray(data_dist).ravel()
    chain = np.einsum("sat,tb->satb", mdp.transition, target).reshape(len(data), len(data))
    mu0 = (mdp.initial[:, None] * target).ravel()
    return features, data, chain, mu0, mdp.reward.ravel()


def lstdq_value(x, data, chain, mu0, reward, gamma):
    d = np.diag(data)
    a = x.T @ d @ (x - gamma * chain @ x)
    theta = np.linalg.solve(a, x.T @ d @ reward)
    return (1 - gamma) * mu0 @ x @ theta


def fqe_value(x, data, chain, mu0, reward, gamma, iterations=20_000):
    d = np.diag(data)
    gram = x.T @ d @ x
    step = np.linalg.solve(gram, x.T @ d @ chain @ x)
    constant = np.linalg.solve(gram, x.T @ d @ reward)
    assert np.abs(np.linalg.eigvals(gamma * step)).max() < 1, "FQE does not converge on this problem"
    theta = np.zeros(x.shape[1])
    for _ in range(iterations):
        theta = constant + gamma * step @ theta
    return (1 - gamma) * mu0 @ x @ theta


def dual_lstdq_ratio(x, data, chain, mu0, gamma):
    """w with E[x w (x - gamma x')] = (1 - gamma) E_mu0 x."""
    d = np.diag(data)
    flow = (x - gamma * chain @ x).T @ d @ x
    return np.linalg.solve(flow, (1 - gamma) * x.T @ mu0)


def mwl_value(x, data, chain, mu0, reward, gamma):
    """MWL with discriminators span(X): min over w of the squared norm of the moment violations."""
    d = np.diag(data)
    flow = (x - gamma * chain @ x).T @ d @ x
    w = np.linalg.lstsq(flow, (1 - gamma) * x.T @ mu0, rcond=None)[0]
    return (x @ w) @ d @ reward


def mql_value(x, data, chain, mu0, reward, gamma):
    """MQL with weights span(X): min over theta of the squared norm of E[x (r + gamma Q' - Q)]."""
    d = np.diag(data)
    z = x.T @ d @ (x - gamma * chain @ x)
    theta = np.linalg.lstsq(z, x.T @ d @ reward, rcond=None)[0]
    return (1 - gamma) * mu0 @ x @ theta


def doubly_robust_value(x, data, chain, mu0, reward, gamma, ratio_params):
    """(1 - gamma) E_mu0 Q + E[tau (r + gamma Q' - Q)] with LSTDQ's Q and the given ratio."""
    d = np.diag(data)
    theta = np.linalg.solve(x.T @ d @ (x - gamma * chain @ x), x.T @ d @ reward)
    q = x @ theta
    return (1 - gamma) * mu0 @ q + (x @ ratio_params) @ d @ (reward + gamma * chain @ q - q)
