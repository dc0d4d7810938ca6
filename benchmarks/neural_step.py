"""One step of GradientDICE with the paper's networks, on one core: ours beside the same learner in eager PyTorch.

`python benchmarks/neural_step.py`, alone on the machine; needs torch.
"""

from __future__ import annotations

import os
import time

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import numpy as np
import torch

import gradientdice as gd
from gradientdice.problem.inputs import network_inputs
from gradientdice.solvers.stochastic.fits import train
from gradientdice.solvers.stochastic.setup import network_setup

ROWS, BATCH, STEPS = 5_000, 128, 2_000


def ours(inputs) -> float:
    """Seconds a step, from the difference of two lengths, so that compilation and start-up cancel."""
    estimator, setup = gd.GradientDICE(0.9), network_setup(gd.MLP.paper(), inputs, 0.9)
    times = []
    for steps in (STEPS, 3 * STEPS):
        solver = gd.PrimalDual(steps, 0.01, BATCH, record_every=steps)
        group = solver.group(estimator, setup)
        train(group, [0])
        started = time.perf_counter()
        train(group, [1])
        times.append(time.perf_counter() - started)
    return (times[1] - times[0]) / (2 * STEPS)


def eager(inputs) -> float:
    """The same updates in PyTorch, written plainly: simultaneous steps of both networks and of η."""
    torch.set_num_threads(1)
    width = inputs.current.shape[1]

    def network() -> torch.nn.Module:
        return torch.nn.Sequential(
            torch.nn.Linear(width, 64),
            torch.nn.ReLU(),
            torch.nn.Linear(64, 64),
            torch.nn.ReLU(),
            torch.nn.Linear(64, 1),
        )

    ratio, critic, eta = network(), network(), torch.zeros(1, requires_grad=True)
    players = torch.optim.SGD([*ratio.parameters(), *critic.parameters(), eta], lr=0.01)
    current, following, initial = (
        torch.as_tensor(a) for a in (inputs.current, inputs.following[:, 0], inputs.initial[:, 0])
    )
    gamma = 0.9

    def step() -> None:
        rows, starts = torch.randint(len(current), (BATCH,)), torch.randint(len(initial), (BATCH,))
        tau = ratio(current[rows])
        f, f_next, f_initial = critic(torch.cat([current[rows], following[rows], initial[starts]])).split(BATCH)
        objective = (
            (1 - gamma) * f_initial + gamma * tau * f_next - tau * f - 0.5 * f**2 + eta * tau - eta - 0.5 * eta**2
        ).mean()
        players.zero_grad()
        objective.backward()
        for parameter in (*critic.parameters(), eta):
            parameter.grad.neg_()
        players.step()

    for _ in range(50):
        step()
    started = time.perf_counter()
    for _ in range(500):
        step()
    return (time.perf_counter() - started) / 500


def main() -> None:
    rng = np.random.default_rng(0)
    states = rng.normal(size=(ROWS, 10))
    data = gd.Transitions(
        states, rng.normal(size=(ROWS, 2)), rng.normal(size=ROWS), 0.9 * states, initial_states=states[:100]
    )
    policy = gd.SamplingPolicy(lambda s, r: r.normal(size=(len(s), 2)))
    inputs = network_inputs(data, policy, 4, rng)
    mine, theirs = ours(inputs), eager(inputs)
    print(
        f"one step of GradientDICE, two networks of 64-64, batch {BATCH}, one core: {1e3 * mine:.2f} ms; eager PyTorch {1e3 * theirs:.2f} ms, {theirs / mine:.1f} times as long"
    )


if __name__ == "__main__":
    main()
