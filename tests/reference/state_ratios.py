"""State ratios as published, in plain loops over rows: what the library's versions must equal where logs allow it.

`following` has for each row the states it leads to with their probabilities, so that ends are written out by hand.
"""

import numpy as np


def cop_td(states, importance, rewards, following, num_states):
    """COP-TD's projected fixed point with the error at the next states, as published, in a table.

    The projection on E[c] = 1 leaves an error along E[x] only: c is the solution for that direction, rescaled.
    """
    error, frequency = np.zeros((num_states, num_states)), np.zeros(num_states)
    for state, rho, nexts in zip(states, importance, following, strict=True):
        frequency[state] += 1
        for successor, chance in nexts:
            error[successor, successor] += chance
            error[successor, state] -= chance * rho
    direction = np.linalg.solve(error, frequency)
    c = direction / (frequency @ direction) * len(states)
    return _value(c[states] * importance, rewards, normalised=True), c


def discounted_cop_td(states, importance, rewards, following, num_states, discount, sweeps=4000):
    """The expected update c(s') ← γ E[ρ c(s) | s'] + 1 − γ, iterated."""
    c = np.ones(num_states)
    for _ in range(sweeps):
        total, count = np.zeros(num_states), np.zeros(num_states)
        for state, rho, nexts in zip(states, importance, following, strict=True):
            for successor, chance in nexts:
                total[successor] += chance * (discount * rho * c[state] + 1 - discount)
                count[successor] += chance
        new = np.where(count > 0, total / np.where(count > 0, count, 1), 0)
        if np.max(np.abs(new - c)) < 1e-15:
            break
        c = new
    return _value(c[states] * importance, rewards, normalised=True), c


def gem(features, following, importance, rewards, initial, discount):
    """GEM's two stationarity conditions as one system in (u, w), with any features, at the logged states.

    u: E[x x'…] in the metric E[xxᵀ] of the emphasis' projected error, w: its gradient.
    """
    n, width = features.shape
    gram, error = np.zeros((width, width)), np.zeros((width, width))
    for x, after, rho in zip(features, following, importance, strict=True):
        gram += np.outer(x, x) / n
        error += (np.outer(x, x) - discount * rho * np.outer(after, x)) / n
    system = np.block([[gram, error], [error.T, np.zeros((width, width))]])
    solution = np.linalg.lstsq(system, np.concatenate([initial.mean(axis=0), np.zeros(width)]), rcond=None)[0]
    assert np.abs(solution[:width]).max() < 1e-6
    c = (1 - discount) * features @ solution[width:]
    return _value(c * importance, rewards, normalised=False), c


def bch(states, importance, rewards, next_states, weights, starts, num_states, discount, kernel=None):
    """BCH's published loss with a kernel over next states (and initial states), 1{s = s̃} by default, by its KKT system.

    γ E[(w(s)β − w(s')) ψ(s')] + (1−γ) E_μ0[(1 − w) ψ], squared, subject to E[w] = 1.
    """
    share = weights / weights.sum()
    matrix, target, frequency = np.zeros((num_states, num_states)), np.zeros(num_states), np.zeros(num_states)
    for state, rho, successor, part in zip(states, importance, next_states, share, strict=True):
        matrix[successor, state] += discount * part * rho
        matrix[successor, successor] -= discount * part
        frequency[state] += part
    for state in starts:
        matrix[state, state] -= (1 - discount) / len(starts)
        target[state] -= (1 - discount) / len(starts)
    kernel = np.eye(num_states) if kernel is None else kernel
    system = np.block(
        [[matrix.T @ kernel @ matrix, frequency[:, None]], [frequency[None], np.zeros((1, 1))]],
    )
    w = np.linalg.solve(system, np.append(matrix.T @ kernel @ target, 1.0))[:-1]
    return _value(w[states] * importance * share * len(states), rewards, normalised=True), w


def _value(ratio, rewards, *, normalised):
    return float(np.sum(ratio * rewards) / (np.sum(ratio) if normalised else len(ratio)))
