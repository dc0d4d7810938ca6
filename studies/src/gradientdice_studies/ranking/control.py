"""Tasks of the control suite with ten candidates each: cart-pole and pendulum to develop on, two for the report.

The log is the suite's own: its behaviour, its time limits. The candidates are the behaviour itself, mixtures of it with
the suite's target, the target and forms of it (sharper or flatter choices; less force or more noise), and two that are
worse. Values are by Monte Carlo: `truth.py` writes them to data/truth.json.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.resources import files

import numpy as np

from gradientdice.log.transitions import Transitions
from gradientdice.policies import DiscretePolicy, SamplingPolicy
from gradientdice_studies.control.actors import mixed_choices, mixed_draws, uniform_choices, uniform_draws
from gradientdice_studies.control.simulate import make_log
from gradientdice_studies.control.tasks import TASKS, ControlPolicy, Task
from gradientdice_studies.ranking.case import BEHAVIOR, COPY, Case, Worth

ROWS = 10_000
# At a limit of 100 steps 0.6% of the discounted steps are cut off.
DISCOUNT = 0.95
# How much of the target the mixtures with the behaviour have.
SHARES = (0.15, 0.3, 0.6, 0.9)
NAMES = ("cart-pole", "pendulum", "long-pole", "swimmer")
# Of continuous actions: how many numbers one has, and how large they are at most.
ACTIONS = {"pendulum": (1, 2.0), "swimmer": (2, 1.0)}


def candidates(task: Task) -> dict[str, ControlPolicy]:
    """Ten policies around a task's behaviour and target."""
    if isinstance(task.target, DiscretePolicy):
        assert isinstance(task.behavior, DiscretePolicy)
        return _choices(task.target, task.behavior)
    assert isinstance(task.behavior, SamplingPolicy)
    return _draws(task.target, task.behavior, *ACTIONS[task.name])


def _choices(target: DiscretePolicy, behavior: DiscretePolicy) -> dict[str, ControlPolicy]:
    """With discrete actions; powers of the probabilities make choices sharper or flatter."""

    def raised(power: float) -> DiscretePolicy:
        def probabilities(states: np.ndarray) -> np.ndarray:
            weights = target.probabilities_at(states) ** power
            return weights / weights.sum(axis=1, keepdims=True)

        return DiscretePolicy(probabilities, target.num_actions)

    opposite = DiscretePolicy(lambda states: target.probabilities_at(states)[:, ::-1], target.num_actions)
    return {
        COPY: behavior,
        **{f"target {share:.0%}": mixed_choices(target, behavior, share) for share in SHARES},
        "target": target,
        "sharper": raised(2.0),
        "flatter": raised(0.5),
        "uniform": uniform_choices(target.num_actions),
        "opposite 20%": mixed_choices(opposite, behavior, 0.2),
    }


def _draws(target: SamplingPolicy, behavior: SamplingPolicy, dimension: int, bound: float) -> dict[str, ControlPolicy]:
    """With continuous actions."""

    def noisier(states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        drawn = target.sample(states, rng)
        return np.clip(drawn + 0.2 * bound * rng.normal(size=drawn.shape), -bound, bound)

    opposite = SamplingPolicy(lambda states, rng: -target.sample(states, rng))
    return {
        COPY: behavior,
        **{f"target {share:.0%}": mixed_draws(target, behavior, share) for share in SHARES},
        "target": target,
        "less force": SamplingPolicy(lambda states, rng: 0.8 * target.sample(states, rng)),
        "noisier": SamplingPolicy(noisier),
        "uniform 20%": mixed_draws(uniform_draws(dimension, bound), behavior, 0.2),
        "opposite 20%": mixed_draws(opposite, behavior, 0.2),
    }


def known_worth(name: str) -> dict[str, Worth]:
    """What a task's candidates and its behaviour are worth, from the file that comes with the package."""
    stored = json.loads(files("gradientdice_studies.ranking").joinpath("data/truth.json").read_text())[name]
    found = {candidate: Worth(row["value"], row["error"]) for candidate, row in stored.items()}
    # The copy is the behaviour under another name.
    return {**found, COPY: found[BEHAVIOR]}


def control_log(task: Task, seed: int) -> Transitions:
    """The suite's log, with the behaviour's probabilities where actions are discrete."""
    data = make_log(task, ROWS, seed)
    if not isinstance(task.behavior, DiscretePolicy):
        return data
    probabilities = task.behavior.probabilities_at(data.states)
    chosen = np.take_along_axis(probabilities, data.actions.astype(np.int64)[:, None], axis=1)[:, 0]
    return replace(data, behavior_log_probs=np.log(chosen))


def _case(name: str) -> Case:
    task = TASKS[name]()
    no_better = (COPY, "opposite 20%")
    log, worth = partial(control_log, task), partial(known_worth, name)
    return Case(name, "control", task.half, DISCOUNT, dict(candidates(task)), no_better, log, worth)


CONTROL: dict[str, Callable[[], Case]] = {name: partial(_case, name) for name in NAMES}
