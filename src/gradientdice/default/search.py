"""The default answer on continuous states: a ratio over kernel features of many bandwidths, and the best Q.

Random Fourier features with bandwidths from coarse to fine, as many as the log allows, give a ratio and a Q for each
ridge of a path (`ridge_scores.py`), on rows that their fits did not see. With each ratio goes a convex combination of
Qs that is best on the other folds (`value_candidates.py`). Where a learned model explains its own Qs and, at discount
1, simulates the policy where the log has been, it is one of those and of fitted Q evaluation's; answers with each kind
of Q then show how much depends on the choice. Else it is one of all: the kernel's, the networks', and 0.

The ridge of the ratio is chosen by what it does to the answer. A small one has much noise, which the standard error
shows. A large one misses a part of the flow, so that the answer takes over a part of Q's error, which is estimated in
one of two ways (`allowance.py`). The chosen ridge has the least of both together. With a good Q that is a large ridge,
and a short interval.

Moments serve every discount, so that several discounts share each pass over the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from gradientdice.base.accelerator import in_thread
from gradientdice.base.effort import Effort
from gradientdice.base.process import give_back_freed_memory
from gradientdice.base.progress import working
from gradientdice.default.allowance import FEW_INPUTS
from gradientdice.default.kept import Kept
from gradientdice.default.learners import Learners, learners_for, without_networks
from gradientdice.default.linear_pair import LinearPair, linear_pair
from gradientdice.default.ridge_scores import RidgeScores, ridge_scores
from gradientdice.default.trial import Candidate, Trial
from gradientdice.default.value_candidates import FITTED, MODEL, OwnValue, ValueCandidates
from gradientdice.estimators.doubly_robust.cross_fit import FOLDS
from gradientdice.functions.kernel import RandomFourier
from gradientdice.policies import Policy, SamplingPolicy
from gradientdice.problem.problem import Problem, num_actions_of
from gradientdice.statistics.bellman import BellmanForms
from gradientdice.statistics.room import margin

BANDWIDTHS = (0.15, 1.5)
RIDGES = tuple(10.0**power for power in range(-6, 0))
# Features for each action grow with the root of the rows, up to a number in all that fits time and memory.
FEATURES_PER_ROOT = {Effort.QUICK: 1.5, Effort.NORMAL: 10**0.5, Effort.THOROUGH: 5.0}
MOST_FEATURES = {Effort.QUICK: 1_000, Effort.NORMAL: 2_000, Effort.THOROUGH: 4_000}
FEWEST_FEATURES = 25
# Other estimators whiten their features, which takes longer than a ridge's solve.
MOST_WHITENED = 1_000
# Feature rows of this many bytes are made at a time; they are kept for the second pass if all take no more than this.
CHUNK_BYTES, CACHE_BYTES = 50 << 20, 256 << 20
# A model is learned without each of so many parts of the log: the folds in groups.
MODEL_FOLDS = 2
# How many times a bias counts against a standard error of the same size: an interval knows the second one only.
BIAS_AVERSION = 2.0
# A loss within this many standard deviations of its noise from the smallest is not significantly larger.
NOISE = 2.0
# Held-out rows do not always show what kernel features of so many inputs miss: see `allowance.py`.
MANY_INPUTS = (
    "kernel features alone, of {} inputs, often miss what matters: normal effort, with a policy that can be asked "
    "anywhere, learns networks too"
)
# A candidate for Q with less than this share of the combination is not worth a note.
NOTED_SHARE = 0.05


@dataclass(frozen=True, eq=False)
class FunctionSearch:
    """All ridges of one discount, and what follows from them.

    Attributes:
        candidates: one for each ridge.
        functions: for estimators that whiten features: the same kind of features, of which directions are dropped in
            place of a ridge.
        model_notes: what the reader should know of the learned model, if there is one.
        cautions: reasons to doubt the answer, whatever the diagnostics say.
        pair: the chosen candidate's ratio and Q as functions of any row; None unless they were asked for.
    """

    candidates: tuple[Candidate, ...]
    functions: RandomFourier
    model_notes: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    pair: LinearPair | None = None

    @property
    def chosen(self) -> Candidate:
        """The one with the least error and bias together."""
        return min(self.candidates, key=lambda found: found.error**2 + (BIAS_AVERSION * found.bias) ** 2)

    def allowance(self, confidence: float) -> float:
        """How much the interval is widened on both sides for misfit."""
        return margin(self.chosen.misfit, confidence)

    def notes(self, confidence: float) -> tuple[str, ...]:
        """What the reader of the default answer with an interval of this confidence should know."""
        chosen = self.chosen
        parts = sorted(((share, name) for name, share in chosen.shares.items() if share >= NOTED_SHARE), reverse=True)
        return (
            f"the ratio's ridge {chosen.ridge:.0e} was chosen among {len(self.candidates)} for the smallest standard "
            "error and bias together",
            "Q is " + " + ".join(f"{share:.2f} × {name}" for share, name in parts),
            self._misfit_note(confidence),
            *(note for note in self.model_notes if note),
        )

    def notes_for_others(self, confidence: float) -> tuple[str, ...]:
        """The same for an answer of another estimator with the functions of the search."""
        return (
            "kernel features of many bandwidths were used; in place of a ridge, directions below "
            f"{self.functions.rank_tolerance:.0e} of the largest are dropped",
            f"the interval spans that of the default answer, {self.chosen.answer.value:.6g}",
            self._misfit_note(confidence),
        )

    def _misfit_note(self, confidence: float) -> str:
        allowance = self.allowance(confidence)
        if set(self.chosen.shares) <= {MODEL, FITTED}:
            return (
                f"the interval is widened by {allowance:.2g} on both sides: answers with other kinds of Q, and the "
                "networks among themselves, differ"
            )
        if allowance > 0:
            return f"the interval is widened by {allowance:.2g} on both sides for misfit that held-out rows show"
        return "held-out rows show no misfit, so that the interval is not widened for it"


@dataclass(frozen=True, eq=False)
class Searching:
    """A search at one discount, for `Problem`.

    Attributes:
        discount: γ.
        kept: what searches for other policies of the same log share with it.
    """

    discount: float
    kept: Kept = field(default_factory=Kept)

    def __call__(self, problem: Problem) -> FunctionSearch:
        """The functions that it chooses for a problem."""
        return search_functions(problem, [self.discount], learners_for(problem, self.kept), self.kept)[0]


def searched_functions(problem: Problem, discounts: Sequence[float], *, pairs: bool = False) -> list[FunctionSearch]:
    """The default's searches at several discounts, which share passes, the model, and what the problem's own keeps."""
    kept = problem.search.kept if isinstance(problem.search, Searching) else Kept()
    return search_functions(problem, discounts, learners_for(problem, kept), kept, pairs=pairs)


def search_functions(
    problem: Problem,
    discounts: Sequence[float],
    learners: Learners | None = None,
    kept: Kept | None = None,
    *,
    pairs: bool = False,
) -> list[FunctionSearch]:
    """Fits the path, combines it with the best Q and scores it, for each discount.

    Args:
        problem: the log and the policy.
        discounts: they share each pass over the log, and the model.
        learners: give further Qs; None for the kernel's alone.
        kept: what searches for other policies of the log share; None for nobody else.
        pairs: whether ratio and Q are also wanted as functions of any row.
    """
    data, policy, kept = problem.data, problem.policy, kept or Kept()
    simulate, fit = (None, None) if learners is None else (learners.simulate, learners.fit)
    functions, folds = mixed_features(problem), problem.folds(FOLDS)
    log = problem.design_of(functions, _chunk_rows(functions), CACHE_BYTES)
    found = []
    with working("ratios, values, answers", 3 + len(discounts), problem.progress) as advance:
        coarse, judging, fitting = folds.coarser(MODEL_FOLDS), partial(kept.judge, problem, folds), None
        if log.devices is not None:
            # While a GPU starts and compiles, threads do what does not ask the policy.
            judging = in_thread(judging)
            if simulate is not None:
                kept.begin(problem, coarse, problem.effort)
            if fit is not None:
                fitting = in_thread(fit(problem, discounts, coarse))
        paths = ridge_scores(log, folds, discounts, RIDGES)
        give_back_freed_memory()
        advance(1)
        model = None if simulate is None else simulate(problem, discounts, coarse, problem.effort)
        give_back_freed_memory()
        advance(1)
        if fitting is None and fit is not None:
            fitting = fit(problem, discounts, coarse)
        fits = [None] * len(discounts) if fitting is None else fitting()
        give_back_freed_memory()
        advance(1)
        judge = judging()
        # With one action the log is the policy's own, and there is little that a ratio could lack.
        crowded = model is None and judge.num_inputs > FEW_INPUTS and num_actions_of(policy) != 1
        input_loss = judge.of_inputs() if crowded else None
        for number, path in enumerate(paths):
            models, fitted = () if model is None else model.by_discount[number], fits[number]
            values = ValueCandidates.of(data, folds, path, models, fitted)
            forms = judge.forms(values.residual)
            own = None if model is None else OwnValue.of(model, number)
            trial = Trial(problem, functions, path, values, forms, own, input_loss)
            candidates = tuple(trial.candidate(ridge) for ridge in range(len(path.ridges)))
            notes = (without_networks(problem),) if model is None else model.notes(number)
            if fit is not None and fitted is None:
                notes = (*notes, "fitted Q evaluation gave no Q: it diverged, or the log is too large for it")
            cautions = (MANY_INPUTS.format(judge.num_inputs),) if crowded else ()
            search = FunctionSearch(candidates, _whitened(functions, policy, path, forms), notes, cautions)
            if pairs:
                networks = [*models, *([] if fitted is None else [fitted])]
                search = replace(search, pair=linear_pair(log, path, networks, search.chosen))
            found.append(search)
            advance(1)
    return found


def mixed_features(problem: Problem) -> RandomFourier:
    """Features of many bandwidths, as many as the log allows."""
    blocks, effort = _blocks(problem.policy), problem.effort
    # Copies of rows, as weights stand for, say nothing new.
    rows = int(problem.data.units.distinct.sum())
    wanted = int(FEATURES_PER_ROOT[effort] * rows**0.5)
    count = max(FEWEST_FEATURES, min(wanted, MOST_FEATURES[effort] // blocks))
    return RandomFourier(count, BANDWIDTHS, problem.seed)


def _whitened(functions: RandomFourier, policy: Policy, path: RidgeScores, forms: BellmanForms) -> RandomFourier:
    """Features that drop what the ridge of the kernel's best Q would all but remove."""
    losses = []
    for number in range(len(path.ridges)):
        weights = np.zeros((forms.own.shape[0], forms.own.shape[1]))
        weights[:, number] = 1.0
        loss, noise = forms.loss(weights)
        losses.append(loss + NOISE * noise)
    most = max(FEWEST_FEATURES, MOST_WHITENED // _blocks(policy))
    return replace(
        functions,
        num_features=min(functions.num_features, most),
        rank_tolerance=path.ridges[int(np.argmin(losses))],
    )


def _chunk_rows(functions: RandomFourier) -> int:
    return max(1_000, CHUNK_BYTES // (8 * (functions.num_features + 1)))


def _blocks(policy: Policy) -> int:
    """How many blocks of features there are: one for each discrete action."""
    return 1 if isinstance(policy, SamplingPolicy) else policy.num_actions or 1
