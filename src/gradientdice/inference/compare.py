"""`compare`: several estimators on one log, side by side, ranked by one figure."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from gradientdice.data.transitions import Transitions
from gradientdice.errors import InputError, require_count
from gradientdice.estimators import Estimator, GradientDICE
from gradientdice.functions.compact import compacted
from gradientdice.functions.design import Functions
from gradientdice.functions.kernel import Nystrom, RandomFourier
from gradientdice.functions.mlp import MLP
from gradientdice.functions.stream import LogDesign
from gradientdice.functions.tabular import Tabular
from gradientdice.inference.arguments import require_estimator, require_functions, require_types, table_for
from gradientdice.inference.automatic import FOLDS, NOISE, RANK_TOLERANCE, automatic
from gradientdice.inference.diagnostics import is_possible
from gradientdice.inference.direct import DirectEstimator
from gradientdice.inference.doubly_robust import doubly_robust
from gradientdice.inference.evaluate import evaluate
from gradientdice.inference.folds import Folds, HeldOut, fold_fits, fold_moments, held_out
from gradientdice.inference.intervals import NormalInterval, independent_shares, require_confidence, standard_error
from gradientdice.inference.linear import solvable
from gradientdice.inference.selection import bellman_judge
from gradientdice.moments import Moments
from gradientdice.policies import Policy
from gradientdice.solvers.closed_form import ClosedForm, LinearEstimator, LinearFit

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    "estimator",
    "value",
    "low",
    "high",
    "standard_error",
    "bellman_loss",
    "loss_noise",
    "verdict",
    "choice",
    "seconds",
    "note",
    "remarks",
)


@dataclass
class _Row:
    estimator: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    standard_error: float | None = None
    bellman_loss: float | None = None
    loss_noise: float | None = None
    verdict: str = ""
    choice: str = ""
    seconds: float = 0.0
    note: str = ""
    remarks: str = ""


def compare(
    data: Transitions,
    policy: Policy,
    estimators: Sequence[Estimator | DirectEstimator],
    *,
    functions: Functions | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Evaluates a policy with several estimators in closed form, and says which of them to use.

    Those that the closed form solves are ranked by one figure, the held-out Bellman loss of the Q that goes with their
    ratio. Of those whose loss is not told apart from the smallest, the one with the smallest standard error is marked.
    A cross-fitted doubly robust answer from GradientDICE's own pair (τ, Q) competes with those given. Related
    estimators stand beside them without a loss. An estimator that does not apply to this log, or has no closed form,
    gets a row that says why.

    Args:
        data: the log.
        policy: the policy to evaluate.
        estimators: what to compare; the first one's discount holds.
        functions: the function class; by default as in `evaluate`.
        confidence: of the intervals.
        seed: for whatever is random.

    Returns:
        One row an estimator, the one to use first: value, interval, standard error, loss, verdict, the seconds that it
        took, a note where it does not apply, and else what to know about it.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = gd.mdp.boyan_chain("episodic"), np.tile([0.1, 0.9], (13, 1))
        >>> data = mdp.sample(5000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
        >>> table = gd.compare(data, gd.TabularPolicy(target), [gd.GradientDICE(0.9), gd.PDIS(0.9)])
        >>> table["choice"].tolist()
        ['use this', '', '']
        >>> table["note"].str[:14].tolist()
        ['', '', 'not applicable']
    """
    import pandas as pd

    require_types(data, policy)
    require_confidence(confidence)
    require_count("seed", seed, low=0)
    if not isinstance(estimators, Sequence) or isinstance(estimators, str) or not estimators:
        raise InputError("compare needs a list of at least one estimator, such as [GradientDICE(0.9), LSTDQ(0.9)].")
    for estimator in estimators:
        require_estimator(estimator)
    require_functions(functions)
    if isinstance(functions, MLP):
        raise InputError("compare is for linear functions, which have closed forms: evaluate networks one by one.")
    discount = estimators[0].discount
    functions = functions if functions is not None else table_for(data, policy)
    # Many kernel features are nearly collinear: the choice of features works with this tolerance.
    kernel = functions is None or isinstance(functions, (RandomFourier, Nystrom))
    solver = ClosedForm(RANK_TOLERANCE) if kernel else ClosedForm()
    if functions is None:
        (found,) = automatic(data, policy, [discount], NormalInterval(), confidence, seed)
        functions = found.chosen.functions
    small = compacted(data, policy, functions) if isinstance(functions, Tabular) else None
    log = LogDesign(*(small or (data, policy, functions)), seed=seed)
    doubly = _Row(f"doubly robust GradientDICE(discount={discount:g}), cross-fitted")
    rows, leaving_out = [doubly], None
    try:
        leaving_out = _LeavingOut.create(log, solver, seed)
        _cross_fit(doubly, leaving_out, discount, confidence, seed)
    except InputError as error:
        # A log may be too small to leave a part of it out, or lack a pair once that is done.
        doubly.note = f"not applicable: with a part of the log left out: {error}"
    for estimator in estimators:
        row = _Row(repr(estimator))
        rows.append(row)
        started = time.perf_counter()
        if estimator.discount != discount:
            row.note = f"not applicable: its discount is {estimator.discount:g}, and that of the first {discount:g}"
            continue
        try:
            estimate = evaluate(
                data, policy, estimator, functions=functions, solver=solver, confidence=confidence, seed=seed
            )
            row.value, row.standard_error, row.verdict = estimate.value, estimate.standard_error, str(estimate.verdict)
            row.low, row.high = estimate.interval or (None, None)
            row.seconds = time.perf_counter() - started
            row.remarks = "; ".join((*estimate.cautions, *estimate.notes))
            if leaving_out is not None and not isinstance(estimator, DirectEstimator):
                _, scores = leaving_out.fit(solvable(estimator, log.functions, solver))
                row.bellman_loss, row.loss_noise = leaving_out.judge(scores)
        except InputError as error:
            row.note = f"not applicable: {error}"
    # A value that no weighting of the logged rewards could have is not one to use.
    possible = [row for row in rows if row.value is not None and is_possible(row.value, data)]
    direct = [False, *(isinstance(estimator, DirectEstimator) for estimator in estimators)]
    own = [row for row, by_itself in zip(rows, direct, strict=True) if not by_itself]
    _rank(possible, [row for row in own[1:] if any(row is other for other in possible)])
    order = sorted(rows, key=lambda row: (row.choice == "", row.value is None))
    return pd.DataFrame([asdict(row) for row in order])


@dataclass(frozen=True)
class _LeavingOut:
    """What all estimators share that are judged on rows they did not see."""

    log: LogDesign
    folds: Folds
    moments: list[Moments]
    judge: Callable[[HeldOut], tuple[float, float]]
    solver: ClosedForm

    @classmethod
    def create(cls, log: LogDesign, solver: ClosedForm, seed: int) -> _LeavingOut:
        """Splits the log; an InputError says why it cannot be split."""
        folds = Folds.create(log.data, FOLDS, seed)
        log = log.without_any(folds.rows)
        return cls(log, folds, fold_moments(log, folds), bellman_judge(log, folds), solver)

    def fit(self, estimator: LinearEstimator) -> tuple[list[LinearFit], HeldOut]:
        """One fit for each fold left out, and what they say about it."""
        fits = fold_fits(self.moments, [estimator], self.solver)
        return fits[0], held_out(self.log, self.folds, fits)[0]


def _cross_fit(row: _Row, leaving_out: _LeavingOut, discount: float, confidence: float, seed: int) -> None:
    """Fills in the doubly robust answer."""
    fits, scores = leaving_out.fit(GradientDICE(discount))
    answer = doubly_robust(leaving_out.log, fits, scores)
    samples = independent_shares(answer.shares, leaving_out.log.data)
    row.value, row.standard_error = answer.value, standard_error(samples)
    row.low, row.high = NormalInterval().interval(answer.value, samples, confidence, seed)
    row.bellman_loss, row.loss_noise = leaving_out.judge(scores)


def _rank(rows: list[_Row], solved: list[_Row]) -> None:
    """Marks the most precise of those whose loss is not told apart from the smallest."""
    judged = [(row, row.bellman_loss, row.loss_noise or 0.0) for row in rows if row.bellman_loss is not None]
    if judged:
        _, least, noise = min(judged, key=lambda entry: entry[1])
        usable = [row for row, loss, own in judged if loss <= least + NOISE * np.hypot(noise, own)]
    else:
        # A log too thin to be split says nothing about the fit; a small standard error alone may be that of an
        # importance sampler none of whose episodes had any weight.
        usable = [row for row in solved if row.standard_error is not None]
    if usable:
        min(usable, key=lambda row: row.standard_error or np.inf).choice = "use this"
