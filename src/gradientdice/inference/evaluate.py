"""`evaluate`: from a log and a policy to an answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gradientdice.data.transitions import Transitions
from gradientdice.errors import InputError, require_count
from gradientdice.estimators import Estimator
from gradientdice.functions.compact import compacted
from gradientdice.functions.design import Functions
from gradientdice.functions.mlp import MLP
from gradientdice.functions.tabular import Tabular
from gradientdice.inference.arguments import (
    chosen_estimator,
    require_estimator,
    require_functions,
    require_no_own_functions,
    require_types,
    table_for,
)
from gradientdice.inference.diagnostics import diagnose, is_possible
from gradientdice.inference.direct import DirectEstimator
from gradientdice.inference.estimate import Estimate
from gradientdice.inference.fits import Fitted, fit
from gradientdice.inference.intervals import (
    IntervalMethod,
    NormalInterval,
    require_confidence,
)
from gradientdice.inference.movement import movements
from gradientdice.policies import Policy
from gradientdice.provenance import provenance
from gradientdice.solvers.closed_form import ClosedForm
from gradientdice.solvers.status import Status

if TYPE_CHECKING:
    from gradientdice.solvers.primal_dual import PrimalDual
    from gradientdice.solvers.projected import ProjectedPrimalDual

OUTSIDE = (
    "the value lies outside the range of the logged rewards, where no mean of them can be; what would help: more data, "
    "better features, or compare"
)


def evaluate(
    data: Transitions,
    policy: Policy,
    estimator: Estimator | DirectEstimator | None = None,
    *,
    discount: float | None = None,
    functions: Functions | MLP | None = None,
    solver: ClosedForm | PrimalDual | ProjectedPrimalDual | None = None,
    interval: IntervalMethod | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    progress: bool = False,
    checkpoint: str | Path | None = None,
) -> Estimate:
    """How well would this policy do?

    Args:
        data: the log.
        policy: the policy to evaluate.
        estimator: by default GradientDICE without a ridge; any of ESTIMATORS and RELATED.
        discount: γ, if no estimator is given; 1 is the average reward.
        functions: the function class; by default a table where states and actions are few whole numbers, else kernel
            features chosen from the data, with a cross-fitted doubly robust answer. `MLP` is for networks.
        solver: by default the closed form; for networks a cross-fitted doubly robust answer.
        interval: by default `NormalInterval`; or `BootstrapInterval`, `EmpiricalLikelihood`.
        confidence: of the interval.
        seed: for whatever is random.
        progress: whether to show a progress bar on a terminal while features are chosen or networks trained.
        checkpoint: for networks with a solver, a folder to which the training writes as it goes and from which it
            goes on.

    Returns:
        The value, its interval, diagnostics and a verdict.

    Raises:
        InputError: if the input cannot be used; the message says what would work.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = gd.mdp.boyan_chain("continuing"), np.tile([0.1, 0.9], (13, 1))
        >>> data = mdp.sample(20_000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
        >>> estimate = gd.evaluate(data, gd.TabularPolicy(target), discount=1.0)
        >>> low, high = estimate.interval
        >>> bool(low < mdp.value(target, 1.0) < high), str(estimate.verdict)
        (True, 'trust')
    """
    confidence = require_confidence(confidence)
    require_count("seed", seed, low=0)
    require_types(data, policy)
    require_functions(functions)
    if estimator is not None:
        require_estimator(estimator)
    given = estimator is not None or solver is not None
    estimator = chosen_estimator(estimator, discount)
    functions = functions if functions is not None else table_for(data, policy)
    if functions is None and given and not isinstance(estimator, DirectEstimator):
        raise InputError(
            "States that are not few whole numbers need a function class beside an estimator or solver of yours: give "
            "functions=RandomFourier(…) or LinearFeatures(…), or give a discount alone and let the library choose."
        )
    method = interval or NormalInterval()
    small = compacted(data, policy, functions) if isinstance(functions, Tabular) else None
    if small is not None:
        require_no_own_functions(estimator)
    log, target, used = small or (data, policy, functions)
    fitted = fit(log, target, estimator, used, solver, method, confidence, seed, progress, checkpoint)
    if small is not None and fitted.functions:
        note = f"the table is over the {small[2].num_states:,} states that the log shows, in their order"
        fitted = replace(fitted, functions=repr(functions), notes=(*fitted.notes, note))
    return _estimate(data, estimator, fitted, confidence, seed, solver)


def _estimate(
    data: Transitions,
    estimator: Estimator | DirectEstimator,
    fitted: Fitted,
    confidence: float,
    seed: int,
    solver: object,
) -> Estimate:
    """The answer with its diagnostics."""
    weights = data.row_weights
    ratio, solution, cautions = fitted.ratio, fitted.solution, fitted.cautions
    if not is_possible(fitted.value, data):
        cautions = (*cautions, OUTSIDE)
    status = fitted.status or (Status.OK if solution is None else solution.status)
    diagnostics = None
    if ratio is not None and fitted.mean_ratio is not None:
        diagnostics = diagnose(
            ratio,
            weights,
            data.rewards,
            solution,
            fitted.error,
            fitted.mean_ratio,
            fitted.misfit,
            fitted.flow,
            fitted.unlogged,
            fitted.density,
        )
    return Estimate(
        value=fitted.value,
        interval=fitted.interval,
        standard_error=fitted.error,
        confidence=confidence,
        discount=estimator.discount,
        estimator=fitted.method or repr(estimator),
        functions=fitted.functions,
        ratio=ratio,
        behavior_mean=float(np.average(data.rewards, weights=weights)),
        diagnostics=diagnostics,
        status=status,
        solution=solution,
        num_rows=len(data),
        num_clusters=len(data) if data.episodes is None else len(np.unique(data.episodes)),
        movements=() if ratio is None else movements(data, ratio, weights),
        notes=fitted.notes,
        cautions=cautions,
        provenance=provenance(seed=seed, solver=repr(solver), rows=len(data)),
    )
