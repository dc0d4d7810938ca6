"""The policy's value in learned dynamics,

    ρ̂ = (1−γ) E_μ0[V],     V(s) = E[Σ_{t<K} γᵗ S_t r̂_t + γᴷ S_K V_φ(s_K)],

along paths of the policy in networks that learned the log's transitions, S_t the probability of no end before step t,
and V_φ fitted to simulated returns. At γ = 1 it is an episode's mean reward over its mean length, where ended ones go
on from initial states.

It has no influence values, and so no interval: a model's error is not the noise of its rows. The value is wrong where
the model is, which nothing but a correction by a ratio can mend.

References:
    Zhang, Paine, Nachum, Paduraru, Tucker, Wang and Norouzi, Autoregressive Dynamics Models for Offline Policy
    Evaluation and Optimization, ICLR 2021. Here all dimensions of the next state are predicted at once, and a fitted
    value takes the place of long paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gradientdice.base.effort import Effort, require_effort
from gradientdice.base.errors import require_number
from gradientdice.default.model.needs import require_simulated
from gradientdice.dice.saddle import Solver
from gradientdice.estimators.answer import Answer, Declares
from gradientdice.estimators.needs import require_needs
from gradientdice.problem.problem import Problem

# Each half of the log is scored by networks that learned from the other half.
FOLDS = 2


@dataclass(frozen=True)
class ModelRollouts(Declares):
    """Simulation in a learned model of the dynamics, for continuous states.

    Attributes:
        discount: γ in [0, 1]; 1 is the average reward.
        effort: how large the networks are and how long they learn: "quick", "normal" or "thorough".

    Example:
        >>> import gradientdice as gd
        >>> gd.ModelRollouts(0.99, effort="quick").effort
        <Effort.QUICK: 'quick'>
    """

    family = "learned model"
    reference = "Zhang, Paine et al., ICLR 2021"
    uses_functions = False

    discount: float
    effort: Effort | str = Effort.NORMAL

    def __post_init__(self) -> None:
        require_number("discount", self.discount, low=0, high=1)
        object.__setattr__(self, "effort", require_effort(self.effort))

    def answer(self, problem: Problem, solver: Solver | None = None) -> Answer:
        """The value in the model, without an interval."""
        require_needs(self, problem, solver)
        (found,) = model_values(problem, [self.discount], Effort(self.effort))
        return replace(found, method=repr(self))


def model_values(problem: Problem, discounts: Sequence[float], effort: Effort = Effort.NORMAL) -> list[Answer]:
    """The policy's value in a learned model at several discounts, which share the model."""
    # JAX is imported when a model is learned, not with the package.
    from gradientdice.default.model.values import simulated_values

    require_simulated(problem)
    found = simulated_values(problem, discounts, problem.folds(FOLDS), effort)
    answers = []
    for number, discount in enumerate(discounts):
        value, initial = found.values[number], found.by_discount[number][-1].initial_value
        if discount < 1 and initial is not None:
            value = (1 - discount) * float(np.average(initial, weights=problem.data.start_weights))
        answers.append(Answer(value=value, notes=found.notes(number)))
    return answers
