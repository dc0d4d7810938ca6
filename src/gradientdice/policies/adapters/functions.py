"""Plain functions of states."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from gradientdice.base.arrays import as_numpy
from gradientdice.policies.adapters.options import Options
from gradientdice.policies.adapters.outputs import as_probabilities
from gradientdice.policies.discrete import DiscretePolicy
from gradientdice.policies.sampling import SamplingPolicy


def adapt(function: Callable[..., Any], options: Options) -> DiscretePolicy | SamplingPolicy:
    """A function of states, or of states and a NumPy generator if it draws actions.

    With `num_actions` it returns probabilities (n, A) or whole numbers (n,); without it actions, whose codes or words
    are known once the policy meets a log.
    """
    options.only("a function", "num_actions", "outputs", "deterministic", "normalizer")
    prepare = options.normalizer or (lambda states: states)
    count = options.num_actions
    if count is not None:
        outputs = options.outputs

        def probabilities(states: np.ndarray) -> np.ndarray:
            returned = as_numpy(function(prepare(states)))
            # Numbers of a function that was not said to give logits are probabilities, and checked as such.
            meant = outputs or ("probabilities" if np.ndim(returned) == 2 else None)
            return as_probabilities(returned, count, meant, options.deterministic)

        return DiscretePolicy(probabilities, count)
    if _takes_two(function):
        return SamplingPolicy(lambda states, rng: as_numpy(function(prepare(states), rng)))
    return SamplingPolicy(lambda states, rng: as_numpy(function(prepare(states))), draws=1)


def _takes_two(function: Callable[..., Any]) -> bool:
    """Whether a function must be given two arguments."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional and p.default is inspect.Parameter.empty for p in parameters) == 2
