"""`compare`: several estimators on one log, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradientdice.data.transitions import Transitions
from gradientdice.errors import InputError
from gradientdice.estimators import Estimator
from gradientdice.functions.design import Functions
from gradientdice.inference.evaluate import evaluate
from gradientdice.policies import Policy

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("estimator", "value", "low", "high", "standard_error", "verdict", "note")


def compare(
    data: Transitions,
    policy: Policy,
    estimators: Sequence[Estimator],
    *,
    functions: Functions | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Evaluates a policy with several estimators in closed form.

    An estimator that does not apply to this log, or has no closed form, gets a row that says why.

    Returns:
        One row an estimator: its value, interval, standard error and verdict.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = gd.mdp.boyan_chain("episodic"), np.tile([0.1, 0.9], (13, 1))
        >>> data = mdp.sample(5000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
        >>> table = gd.compare(data, gd.TabularPolicy(target), [gd.GradientDICE(0.9), gd.GenDICE(0.9)])
        >>> table["note"].str[:14].tolist()
        ['', 'not applicable']
    """
    import pandas as pd

    if not estimators:
        raise InputError("compare needs at least one estimator.")
    rows = []
    for estimator in estimators:
        try:
            estimate = evaluate(data, policy, estimator, functions=functions, confidence=confidence, seed=seed)
        except InputError as error:
            rows.append((repr(estimator), None, None, None, None, "", f"not applicable: {error}"))
            continue
        low, high = estimate.interval or (None, None)
        rows.append((repr(estimator), estimate.value, low, high, estimate.standard_error, str(estimate.verdict), ""))
    return pd.DataFrame(rows, columns=list(COLUMNS))
