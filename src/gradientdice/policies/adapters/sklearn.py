"""Classifiers of scikit-learn over discrete actions, and regressors whose prediction is the action."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradientdice.base.errors import InputError
from gradientdice.policies.adapters.options import Options
from gradientdice.policies.adapters.outputs import one_hot
from gradientdice.policies.discrete import DiscretePolicy
from gradientdice.policies.sampling import SamplingPolicy


def adapt(model: Any, options: Options) -> DiscretePolicy | SamplingPolicy:
    """The class is the action: its number, or its word, which must be among the log's."""
    options.only("a model of scikit-learn", "deterministic", "num_actions", "normalizer")
    prepare = options.normalizer or (lambda states: states)
    if not hasattr(model, "predict"):
        raise InputError(f"A {type(model).__name__} does not predict actions: give a classifier or a regressor.")
    try:
        classes = np.asarray(model.classes_)
    except AttributeError:
        if hasattr(model, "predict_proba"):
            raise InputError("The classifier has not been fitted: call fit first.") from None
        return SamplingPolicy(lambda states, rng: model.predict(_rows(prepare(states))), draws=1)
    greedy = bool(options.deterministic) or not hasattr(model, "predict_proba")
    names, columns, count = _codes(classes, options.num_actions)

    def probabilities(states: np.ndarray) -> np.ndarray:
        rows = _rows(prepare(states))
        if greedy:
            return one_hot(columns[np.searchsorted(classes, model.predict(rows))], count)
        found = np.zeros((len(rows), count))
        found[:, columns] = model.predict_proba(rows)
        return found

    return DiscretePolicy(probabilities, count, action_names=names)


def _codes(classes: np.ndarray, num_actions: int | None) -> tuple[tuple[str, ...] | None, np.ndarray, int]:
    """The words of the actions if the classes are words, each class's column, and how many columns there are."""
    if classes.ndim != 1:
        raise InputError("The classifier has several outputs: a policy has one.")
    if classes.dtype.kind in "iub":
        return None, classes.astype(np.int64), num_actions or int(classes.max()) + 1
    if classes.dtype.kind == "f" and (classes == classes.astype(np.int64)).all():
        return None, classes.astype(np.int64), num_actions or int(classes.max()) + 1
    words = tuple(str(word) for word in classes)
    return words, np.arange(len(words)), len(words)


def _rows(states: np.ndarray) -> np.ndarray:
    """One row per state, as scikit-learn wants them."""
    return np.asarray(states).reshape(len(states), -1)
