"""One step of GradientDICE with the paper's networks, on one core: ours beside the same learner in eager PyTorch.

`python benchmarks/neural_step.py`; needs torch. Both are timed in turn, by the processor's time of this process, and
the fastest round of each counts: what else the machine does then matters little.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import numpy as np
import torch

import gradientdice as gd
from gradientdice.dice.stochastic.primal_dual import train
from gradientdice.dice.stochastic.setup import network_setup
from gradientdice.problem.inputs import network_inputs

ROWS, BATCH, STEPS, ROUNDS = 5_000, 128, 1_000, 5


def ours(inputs) -> Callable[[], float]:
    """A round's seconds a step, from the difference of two lengths, so that start-up cancels."""
    estimator, setup = gd.GradientDICE(0.9), network_setup(gd.MLP.paper(), inputs, 0.9)
    short, long = (
        gd.PrimalDual(steps, 0.01, BATCH, record_every=steps).group(estimator, setup) for steps in (STEPS, 3 * STEPS)
    )
    for group in (short, long):
        train(group, [0])  # compiled

    def seconds() -> float:
        times = []
        for group in (short, long):
            started = time.process_time()
            train(group, [1])
            times.append(time.process_time() - started)
        return (times[1] - times[0]) / (2 * STEPS)

    return seconds


def eager(inputs) -> Callable[[], float]:
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
    groups = [{"params": ratio.parameters()}, {"params": [*critic.parameters(), eta], "maximize": True}]
    players = torch.optim.SGD(groups, lr=0.01, foreach=True)
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
        players.step()

    for _ in range(50):
        step()

    def seconds() -> float:
        started = time.process_time()
        for _ in range(STEPS):
            step()
        return (time.process_time() - started) / STEPS

    return seconds


def main() -> None:
    rng = np.random.default_rng(0)
    states = rng.normal(size=(ROWS, 10))
    data = gd.Transitions(
        states, rng.normal(size=(ROWS, 2)), rng.normal(size=ROWS), 0.9 * states, initial_states=states[:100]
    )
    policy = gd.SamplingPolicy(lambda s, r: r.normal(size=(len(s), 2)))
    inputs = network_inputs(data, policy, 4, rng)
    both = ours(inputs), eager(inputs)
    rounds = np.array([[seconds() for seconds in both] for _ in range(ROUNDS)])
    mine, theirs = rounds.min(axis=0)
    print(
        f"one step of GradientDICE, two networks of 64-64, batch {BATCH}, one core: {1e3 * mine:.2f} ms; eager PyTorch {1e3 * theirs:.2f} ms, {theirs / mine:.1f} times as long"
    )


if __name__ == "__main__":
    main()
