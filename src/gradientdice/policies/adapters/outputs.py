"""What networks and functions return, as probabilities: logits, probabilities, or the numbers of actions."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Integer

from gradientdice.base.arrays import as_numpy, require_memory
from gradientdice.base.errors import InputError, first_bad_row


def one_hot(actions: Integer[np.ndarray, " n"], num_actions: int) -> Float[np.ndarray, "n A"]:
    """Probability 1 for the action of each row."""
    actions = np.asarray(actions)
    outside = (actions < 0) | (actions >= num_actions)
    if outside.any():
        row = first_bad_row(outside)
        raise InputError(f"The policy takes action {actions[row]} in row {row}, and there are {num_actions} actions.")
    require_memory("the actions' probabilities", len(actions), num_actions, remedy="Number the actions from 0.")
    found = np.zeros((len(actions), num_actions))
    found[np.arange(len(actions)), actions] = 1.0
    return found


def softmax(logits: Float[np.ndarray, "n A"]) -> Float[np.ndarray, "n A"]:
    """Probabilities from logits, in float64 so that each row sums to 1."""
    shifted = np.asarray(logits, dtype=np.float64)
    shifted = np.exp(shifted - shifted.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def as_probabilities(
    returned: Any, num_actions: int, outputs: str | None, deterministic: bool | None
) -> Float[np.ndarray, "n A"]:
    """What a network returned for a batch of states, as probabilities; an error if it cannot be told what it is."""
    if isinstance(returned, (tuple, list)) and len(returned) == 2 and not np.isscalar(returned[0]):
        raise InputError(
            "The network returns two things: wrap it in a function that returns only the actions' probabilities."
        )
    array = np.asarray(as_numpy(returned))
    if array.ndim == 2 and array.shape[1] == 1 and num_actions > 1:
        array = array[:, 0]
    if array.ndim == 1 and outputs in (None, "actions"):
        return one_hot(_whole(array), num_actions)
    if array.ndim != 2 or array.shape[1] != num_actions:
        raise InputError(
            f"The policy returned shape {array.shape}; for {num_actions} actions it must return one row of "
            f"{num_actions} numbers, or one action, per state."
        )
    if outputs not in ("logits", "probabilities"):
        raise InputError('Say what the network returns for each action: outputs="logits" or outputs="probabilities".')
    found = softmax(array) if outputs == "logits" else array.astype(np.float64)
    return one_hot(found.argmax(axis=1), num_actions) if deterministic else found


def _whole(actions: np.ndarray) -> np.ndarray:
    if actions.dtype.kind not in "biuf":
        raise InputError(
            f"The policy's action in row 0 is {actions[0]!s:.40}, which is no number. Return the number of each "
            "action, from 0 on: for a log with words, its place in data.action_names."
        )
    whole = actions.astype(np.int64)
    if (whole != actions).any():
        row = first_bad_row(whole != actions)
        raise InputError(f"The policy's action in row {row} is {actions[row]}, which is no whole number.")
    return whole
