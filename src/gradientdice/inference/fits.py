"""The ways to an answer: direct estimators, closed forms, stochastic solvers, networks, or features that are chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gradientdice.data.transitions import Transitions
from gradientdice.errors import InputError
from gradientdice.estimators import Estimator
from gradientdice.functions.design import Functions, whole_design
from gradientdice.functions.inputs import network_inputs
from gradientdice.functions.kernel import RandomFourier
from gradientdice.functions.mlp import MLP
from gradientdice.functions.stream import LogDesign
from gradientdice.functions.tabular import Tabular
from gradientdice.inference.automatic import automatic
from gradientdice.inference.direct import DirectAnswer, DirectEstimator
from gradientdice.inference.flow import flow_residuals
from gradientdice.inference.intervals import (
    IntervalMethod,
    independent_shares,
    standard_error,
)
from gradientdice.inference.linear import closed_form_answer, describe
from gradientdice.inference.misfit import bellman_misfit
from gradientdice.inference.sparse_table import unlogged_share
from gradientdice.moments import Moments
from gradientdice.policies import Policy
from gradientdice.solvers.closed_form import ClosedForm
from gradientdice.solvers.solution import Solution
from gradientdice.solvers.status import Status

if TYPE_CHECKING:
    from gradientdice.solvers.primal_dual import PrimalDual
    from gradientdice.solvers.projected import ProjectedPrimalDual

LARGEST_REWARD = 1e100


@dataclass(frozen=True)
class Fitted:
    """What every way gives back: the value with its interval, and what the diagnostics are made of."""

    value: float
    interval: tuple[float, float] | None
    error: float | None
    ratio: np.ndarray | None
    solution: Solution | None
    mean_ratio: float | None
    functions: str
    notes: tuple[str, ...]
    method: str = ""
    misfit: float = 0.0
    flow: float | None = None
    status: Status | None = None  # where there is no solution
    unlogged: float | None = None
    cautions: tuple[str, ...] = ()
    density: np.ndarray | None = None


def fit(
    data: Transitions,
    policy: Policy,
    estimator: Estimator | DirectEstimator,
    functions: Functions | MLP | None,
    solver: ClosedForm | PrimalDual | ProjectedPrimalDual | None,
    method: IntervalMethod,
    confidence: float,
    seed: int,
    progress: bool,
    checkpoint: str | Path | None,
) -> Fitted:
    """The answer, by the way that goes with estimator, functions and solver."""
    if isinstance(estimator, DirectEstimator):
        return _direct(data, policy, estimator, functions, solver, method, confidence, seed)
    if isinstance(functions, MLP):
        return _networks(data, policy, estimator, functions, solver, method, confidence, seed, progress, checkpoint)
    if functions is None:
        return _automatic(data, policy, estimator.discount, method, confidence, seed, progress)
    log = LogDesign(data, policy, functions, seed=seed)
    if solver is None or isinstance(solver, ClosedForm):
        return _closed_form(log, estimator, solver or ClosedForm(), method, confidence, seed)
    return _stochastic(log, estimator, solver, seed)


def _direct(
    data: Transitions,
    policy: Policy,
    estimator: DirectEstimator,
    functions: Functions | MLP | None,
    solver: object,
    method: IntervalMethod,
    confidence: float,
    seed: int,
) -> Fitted:
    if solver is not None and not isinstance(solver, ClosedForm):
        raise InputError(f"{type(estimator).__name__} needs no solver: leave solver= out.")
    largest = float(np.abs(data.rewards).max())
    if largest > LARGEST_REWARD:
        raise InputError(
            f"rewards as large as {largest:.1e} overflow when they are squared: divide them by a constant, and "
            "multiply the value by it."
        )
    given = functions is not None
    functions = functions if given else RandomFourier()  # those without functions take no notice
    answer = estimator.answer(data, policy, functions, seed)
    if not given and answer.functions:
        chosen = "RandomFourier() is what is used where no functions are given; compare chooses them from the data"
        blind = () if answer.bellman else ("nobody chose the features, and nothing here shows what they miss",)
        answer = replace(answer, notes=(*answer.notes, chosen), cautions=(*answer.cautions, *blind))
    misfit = 0.0
    if not isinstance(functions, MLP) and answer.functions:
        if isinstance(functions, Tabular):
            if functions.is_sparse and answer.unlogged is None:
                answer = replace(answer, unlogged=unlogged_share(data, policy, functions, estimator.discount))
        elif answer.bellman and answer.shares is not None:
            misfit = bellman_misfit(LogDesign(data, policy, functions, seed=seed), answer.shares, seed)
    return _with_interval(data, answer, method, confidence, seed, misfit)


def _with_interval(
    data: Transitions, answer: DirectAnswer, method: IntervalMethod, confidence: float, seed: int, misfit: float = 0.0
) -> Fitted:
    interval = error = None
    cautions = answer.cautions
    if answer.shares is None:
        cautions = (*cautions, "there are no influence values, and so no interval; what would help: compare")
    else:
        samples = independent_shares(answer.shares, data)
        error, interval = standard_error(samples), method.interval(answer.value, samples, confidence, seed)
    return Fitted(
        answer.value,
        interval,
        error,
        answer.ratio,
        answer.solution,
        answer.mean_ratio,
        answer.functions,
        answer.notes,
        misfit=misfit,
        status=answer.status,
        unlogged=answer.unlogged,
        cautions=cautions,
        density=answer.density,
    )


def _automatic(
    data: Transitions,
    policy: Policy,
    discount: float,
    method: IntervalMethod,
    confidence: float,
    seed: int,
    progress: bool,
) -> Fitted:
    (result,) = automatic(data, policy, [discount], method, confidence, seed, progress=progress)
    chosen, spanned = result.chosen, result.spanned
    notes = [
        f"features chosen among {len(result.candidates)} candidates by held-out kernel Bellman loss and precision; the "
        f"interval spans the {len(spanned)} that are nearly as good by both"
    ]
    values = [candidate.answer.value for candidate in spanned]
    if len(values) > 1:
        notes.append(f"their answers range from {min(values):.6g} to {max(values):.6g}")
    notes.append(f"the interval is {result.allowance:.2g} longer on both sides for what the features may miss")
    ratio = chosen.answer.shares.ratio
    ((flow, flow_noise),) = flow_residuals(data, policy, discount, [ratio], seed)
    return Fitted(
        chosen.answer.value,
        result.interval,
        chosen.error,
        ratio,
        chosen.solution,
        chosen.mean_ratio,
        repr(chosen.functions),
        tuple(notes),
        f"doubly robust GradientDICE(discount={discount:g}), cross-fitted",
        chosen.loss / chosen.noise if chosen.noise > 0 else 0.0,
        flow / flow_noise if flow_noise > 0 else 0.0,
    )


def _closed_form(
    log: LogDesign, estimator: Estimator, solver: ClosedForm, method: IntervalMethod, confidence: float, seed: int
) -> Fitted:
    answer = closed_form_answer(log, estimator, solver)
    assert answer.shares is not None
    misfit = 0.0 if isinstance(log.functions, Tabular) else bellman_misfit(log, answer.shares, seed)
    return _with_interval(log.data, answer, method, confidence, seed, misfit)


def _stochastic(log: LogDesign, estimator: Estimator, solver: PrimalDual | ProjectedPrimalDual, seed: int) -> Fitted:
    from gradientdice.solvers.projected import ProjectedPrimalDual

    design = whole_design(log.data, log.policy, log.functions, np.random.default_rng(seed))
    if isinstance(solver, ProjectedPrimalDual):
        solution = solver.solve_log(estimator, design, Moments.from_design(log), seed=seed)
    else:
        solution = solver.solve_log(estimator, design, seed=seed)
    raw = design.current.predict(solution.ratio_params[:, None])[:, 0]
    ratio = np.asarray(estimator.ratio(raw))
    # At discount 1 the absorbing state's own row, the last, is not part of the problem.
    keep = slice(0, len(log.data)) if estimator.discount == 1 else slice(None)
    value, mean_ratio = (
        float(np.average(column[keep], weights=design.weights[keep])) for column in (ratio * design.rewards, ratio)
    )
    note = "a stochastic solver gives no influence values, so there is no interval; the closed form gives one"
    own = ratio[: len(log.data)]
    return Fitted(value, None, None, own, solution, mean_ratio, describe(log.functions), (note,))


def _networks(
    data: Transitions,
    policy: Policy,
    estimator: Estimator,
    functions: MLP,
    solver: ClosedForm | PrimalDual | ProjectedPrimalDual | None,
    method: IntervalMethod,
    confidence: float,
    seed: int,
    progress: bool,
    checkpoint: str | Path | None,
) -> Fitted:
    from gradientdice.inference.neural import neural_doubly_robust
    from gradientdice.solvers.neural.solve import as_solution, predict, train_networks
    from gradientdice.solvers.primal_dual import PrimalDual

    if solver is None:
        result = neural_doubly_robust(data, policy, estimator, functions, seed=seed, progress=progress)
        samples = independent_shares(result.shares, data)
        return Fitted(
            result.value,
            method.interval(result.value, samples, confidence, seed),
            standard_error(samples),
            result.shares.ratio,
            result.solution,
            result.mean_ratio,
            repr(functions),
            ("networks have no misfit of their own that could be bounded; the interval covers what sampling does",),
            f"doubly robust {estimator!r} with fitted Q, {result.members} networks of each kind, cross-fitted",
        )
    if not isinstance(solver, PrimalDual):
        raise InputError(
            f"{type(solver).__name__} is for linear functions: networks are trained by PrimalDual(…), or give no "
            "solver for a cross-fitted doubly robust answer with an interval."
        )
    inputs = network_inputs(data, policy, functions.draws, np.random.default_rng(seed))
    folder = None if checkpoint is None else Path(checkpoint)
    plan, outcome = train_networks(estimator, functions, solver, inputs, [seed], checkpoint=folder, progress=progress)
    solution = as_solution(plan, outcome, 0)
    layers = [(weight[0], bias[0]) for weight, bias in outcome.players.ratio]
    ratio = np.asarray(estimator.ratio(predict(layers, inputs.current[: len(data)])))
    value, mean_ratio = (float(figure) for figure in outcome.curve[0, -1])
    note = "a stochastic solver gives no influence values, so there is no interval; without a solver there is one"
    return Fitted(value, None, None, ratio, solution, mean_ratio, repr(functions), (note,))
