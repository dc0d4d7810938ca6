"""The second moments of a log that every linear estimator is a function of.

With x = x(s,a), x̄' = Σ_a' π(a'|s') x(s',a') and expectations over the (weighted) data,

    C = E[x xᵀ],   B = E[x̄' xᵀ],   v = E[x],   b = E_μ0[x̄],   c = E[x r],   A = C − γB.

They are float64, take one pass in O(K²) memory, add up over parts of the data, and serve every discount.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike

from gradientdice.base.arrays import as_floats, require_memory
from gradientdice.base.errors import InputError, require_count, starts_missing
from gradientdice.functions import FeatureMap, LinearFunctions
from gradientdice.functions.linear import RANK_TOLERANCE
from gradientdice.functions.rows import BlockRows, Rows, add_product, cross_product
from gradientdice.log.scanning.log import ScannedLog
from gradientdice.log.transitions import Transitions
from gradientdice.mdp import TabularMDP
from gradientdice.policies import Policy
from gradientdice.problem.absorbing import loop_weight
from gradientdice.problem.design import Design, self_loop
from gradientdice.problem.device_sums import DeviceSums
from gradientdice.problem.logged import require_logged
from gradientdice.problem.stream import CHUNK_ROWS, LogDesign

# Moments of a chunk are kept for other policies if a matrix of them takes no more bytes than this.
SHARED_MOMENTS = 16 << 20


@dataclass(frozen=True, eq=False)
class Moments:
    """C, B, v, b and c, under words for names. Add two to merge the data behind them.

    Attributes:
        gram: C, (K, K).
        next_gram: B, (K, K).
        mean: v, (K,).
        initial: b, (K,); None if the log has no initial states.
        reward: c, (K,).
        weight: the total weight of the data behind the means.
        initial_weight: the total weight of the initial states behind `initial`: their number if each counts once.
        absorbing_weight: the weight of the absorbing state's self-loop in `weight`; None if there is no
            absorbing state. If there is, its feature is the last.
        rank_tolerance: directions of the features below this share of the largest are dropped by a solver: the
            function class decides it.
    """

    gram: Float[np.ndarray, "K K"]
    next_gram: Float[np.ndarray, "K K"]
    mean: Float[np.ndarray, " K"]
    initial: Float[np.ndarray, " K"] | None
    reward: Float[np.ndarray, " K"]
    weight: float = 1.0
    initial_weight: float = 1.0
    absorbing_weight: float | None = None
    rank_tolerance: float = RANK_TOLERANCE

    @property
    def num_features(self) -> int:
        """K."""
        return len(self.mean)

    def bellman(self, discount: float) -> Float[np.ndarray, "K K"]:
        """A = C − γB."""
        return self.gram - discount * self.next_gram

    def initial_for(self, discount: float) -> Float[np.ndarray, " K"]:
        """(1−γ)b, which at discount 1 is 0 and needs no initial states."""
        if discount == 1:
            return np.zeros(self.num_features)
        if self.initial is None:
            raise starts_missing(discount)
        return (1 - discount) * self.initial

    def for_discount(self, discount: float) -> Moments:
        """The moments to use at this discount: at 1, ended episodes restart instead of being absorbed."""
        if discount < 1 or self.absorbing_weight is None:
            return self
        if self.initial is None:
            raise starts_missing(discount)
        scale = self.weight / (self.weight - self.absorbing_weight)
        ended = self.next_gram[-1, :-1]  # E[1{ended} x]
        next_gram = self.next_gram[:-1, :-1] + np.outer(self.initial[:-1], ended)
        return Moments(
            scale * self.gram[:-1, :-1],
            scale * next_gram,
            scale * self.mean[:-1],
            self.initial[:-1],
            scale * self.reward[:-1],
            self.weight - self.absorbing_weight,
            self.initial_weight,
            rank_tolerance=self.rank_tolerance,
        )

    def __add__(self, other: Moments) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        if (self.absorbing_weight is None) != (other.absorbing_weight is None):
            # A part in which nothing ended knows nothing of the absorbing state; the whole has it all the same.
            return self._with_absorbing() + other._with_absorbing()
        if self.num_features != other.num_features:
            raise InputError(f"Moments of {self.num_features} and of {other.num_features} features do not add up.")
        total = self.weight + other.weight

        def merge(mine: np.ndarray, theirs: np.ndarray) -> np.ndarray:
            return (self.weight * mine + other.weight * theirs) / (total or 1.0)

        merged = Moments(
            merge(self.gram, other.gram),
            merge(self.next_gram, other.next_gram),
            merge(self.mean, other.mean),
            self.initial,
            merge(self.reward, other.reward),
            total,
            self.initial_weight,
            None if self.absorbing_weight is None else self.absorbing_weight + (other.absorbing_weight or 0.0),
            max(self.rank_tolerance, other.rank_tolerance),
        )
        if self.initial is None or other.initial is None:
            known = other if self.initial is None else self
            return replace(merged, initial=known.initial, initial_weight=known.initial_weight)
        starts = self.initial_weight + other.initial_weight
        initial = (self.initial_weight * self.initial + other.initial_weight * other.initial) / starts
        return replace(merged, initial=initial, initial_weight=starts)

    def _with_absorbing(self) -> Moments:
        """The same with a feature for the absorbing state and its self-loop, where they have none."""
        if self.absorbing_weight is not None:
            return self
        loop = loop_weight(self.weight)
        total = self.weight + loop
        share = self.weight / (total or 1.0)
        itself = 1 - share
        corner = np.zeros((self.num_features + 1, self.num_features + 1))
        corner[-1, -1] = itself
        return Moments(
            share * np.pad(self.gram, (0, 1)) + corner,
            share * np.pad(self.next_gram, (0, 1)) + corner,
            np.append(share * self.mean, itself),
            None if self.initial is None else np.append(self.initial, 0.0),
            np.append(share * self.reward, 0.0),
            total,
            self.initial_weight,
            loop,
            self.rank_tolerance,
        )

    @classmethod
    def exact(cls, mdp: TabularMDP, policy: ArrayLike, features: ArrayLike, data_dist: ArrayLike) -> Moments:
        """The population's moments, from the model itself.

        Args:
            mdp: the model.
            policy: the target policy, a `TabularPolicy` or an (S, A) array.
            features: X, (S·A, K), state-major.
            data_dist: d_μ, (S, A).

        Example:
            >>> import numpy as np, gradientdice as gd
            >>> mdp = gd.mdp.boyan_chain("episodic")
            >>> target = np.tile([0.1, 0.9], (13, 1))
            >>> moments = gd.Moments.exact(mdp, target, np.eye(26), np.full((13, 2), 1 / 26))
            >>> solution = gd.solve(gd.GradientDICE(discount=0.9), moments)
            >>> np.allclose(
            ...     solution.ratio_params.reshape(13, 2),
            ...     mdp.ratio(target, 0.9, np.full((13, 2), 1 / 26)),
            ... )
            True
        """
        if not isinstance(mdp, TabularMDP):
            raise InputError(f"mdp must be a TabularMDP, not {type(mdp).__name__}.")
        x = as_floats("features", features)
        pairs = mdp.num_states * mdp.num_actions
        if x.ndim != 2 or len(x) != pairs:
            raise InputError(f"features must have shape ({pairs}, K), one row per state-action pair, not {x.shape}.")
        shape = mdp.num_states, mdp.num_actions
        probabilities, data = as_floats("policy", policy), as_floats("data_dist", data_dist)
        for name, array in (("policy", probabilities), ("data_dist", data)):
            if array.shape != shape:
                raise InputError(f"{name} must have shape {shape} (states, actions), not {array.shape}.")
        data = data.ravel()
        expected = np.einsum("sa,sak->sk", probabilities, x.reshape(mdp.num_states, mdp.num_actions, -1))
        following = mdp.transition.reshape(pairs, -1) @ expected
        weighted = data[:, None] * x
        return cls(
            gram=x.T @ weighted,
            next_gram=following.T @ weighted,
            mean=x.T @ data,
            initial=expected.T @ mdp.initial,
            reward=weighted.T @ mdp.reward.ravel(),
        )

    @classmethod
    def from_rows(
        cls,
        current: Rows,
        following: Rows,
        rewards: Float[np.ndarray, " n"],
        weights: Float[np.ndarray, " n"],
        width: int,
    ) -> Moments:
        """The moments of some feature rows; initial states come by `+` or `replace`."""
        require_memory("The moments of the features", width, width, remedy="Use fewer features or actions.")
        total = float(weights.sum())
        scale = 1 / total if total > 0 else 0.0
        return cls(
            gram=cross_product(current, current, weights, width) * scale,
            next_gram=cross_product(following, current, weights, width) * scale,
            mean=weighted_sum(current, weights, width) * scale,
            initial=None,
            reward=weighted_sum(current, weights * rewards, width) * scale,
            weight=total,
        )

    @classmethod
    def from_transitions(
        cls,
        data: Transitions | ScannedLog,
        policy: Policy,
        functions: LinearFunctions,
        *,
        seed: int = 0,
        chunk_rows: int = CHUNK_ROWS,
    ) -> Moments:
        """The moments of a log, in chunks: the features of only `chunk_rows` transitions exist at a time.

        Args:
            data: the log, in memory or scanned.
            policy: the target policy.
            functions: the function class.
            seed: for policies that can only be sampled.
            chunk_rows: the number of transitions taken at a time; a scanned log has its own `batch_rows`.
        """
        require_count("chunk_rows", chunk_rows)
        if isinstance(data, ScannedLog):
            from gradientdice.problem.scan.moments import moments_of_scan

            return moments_of_scan(data, policy, functions, seed)
        return cls.from_design(LogDesign(data, policy, functions, seed=seed, chunk_rows=chunk_rows))

    @classmethod
    def from_design(cls, log: LogDesign) -> Moments:
        """The moments of a log's feature rows."""
        if log.devices is not None:
            sums = DeviceSums(log.devices, log.width)
            for _, design in log.chunks():
                sums.add(design)
            return MomentSums.on_device(sums, np.ones(1)).completed(log, log.first)
        moments, design = None, None
        for rows, design in log.chunks():
            known = log.features.moments.get(rows.start)
            if known is None:
                part = cls.from_rows(design.current, design.following, design.rewards, design.weights, design.width)
            else:
                part = known._followed_by(design)
            if rows.start in log.features.chunks and part.gram.nbytes <= SHARED_MOMENTS:
                log.features.moments[rows.start] = part
            moments = part if moments is None else moments + part
        assert moments is not None and design is not None
        return moments.completed(log, design)

    def _followed_by(self, design: Design) -> Moments:
        """These moments with the following rows of another policy."""
        scale = 1 / self.weight if self.weight > 0 else 0.0
        return replace(
            self, next_gram=cross_product(design.following, design.current, design.weights, design.width) * scale
        )

    def completed(self, log: LogDesign, design: Design, starts: Bool[np.ndarray, " n0"] | None = None) -> Moments:
        """With the absorbing state's self-loop and the initial states, which are the log's and not the rows'.

        Args:
            log: the log.
            design: any chunk of it.
            starts: which of its initial states to use; None is all.
        """
        if log.initial is None:
            return self.with_log(log.functions, design)
        weight = float(log.initial_weights.sum() if starts is None else log.initial_weights[starts].sum())
        return replace(self, initial=mean_start(log, starts), initial_weight=weight).with_log(log.functions, design)

    def with_log(self, functions: FeatureMap, design: Design) -> Moments:
        """Moments of rows, with the mean initial row in place, as those of a log: checked, with the self-loop.

        Args:
            functions: the function class.
            design: any rows of the log.
        """
        moments = self
        if design.absorbing:
            loop, weight = self_loop(design), loop_weight(self.weight)
            row = Moments.from_rows(loop, loop, np.zeros(1), np.array([weight]), design.width)
            moments = replace(moments + row, absorbing_weight=weight)
        moments = replace(moments, rank_tolerance=functions.rank_tolerance)
        begun = 0.0 if moments.initial is None else np.abs(moments.initial)
        reached = np.abs(moments.next_gram).sum(axis=1) + begun
        own = slice(0, design.width - design.absorbing)
        require_logged(functions, np.diag(moments.gram)[own], reached[own])
        return moments


@dataclass(eq=False)
class MomentSums:
    """The moments' sums over some rows, as far as they do not depend on the policy; updated in place."""

    gram: Float[np.ndarray, "K K"]
    mean: Float[np.ndarray, " K"]
    reward: Float[np.ndarray, " K"]
    weight: float = 0.0

    @classmethod
    def zero(cls, width: int) -> MomentSums:
        """Those of no rows."""
        require_memory("The moments of the features", width, width, remedy="Use fewer features or actions.")
        return cls(np.zeros((width, width)), np.zeros(width), np.zeros(width))

    def add(self, design: Design, rows: Int[np.ndarray, " m"] | None = None) -> None:
        """Adds feature rows; all of them, unless `rows` says which."""
        weights, rewards, width = design.weights, design.rewards, design.width
        current = design.current
        if rows is not None:
            weights, rewards, current = weights[rows], rewards[rows], current.take(rows)
        add_product(self.gram, current, current, weights)
        self.mean += weighted_sum(current, weights, width)
        self.reward += weighted_sum(current, weights * rewards, width)
        self.weight += float(weights.sum())

    def merge(self, other: MomentSums) -> None:
        """Adds the sums over other rows."""
        for name in ("gram", "mean", "reward"):
            total = getattr(self, name)
            total += getattr(other, name)
        self.weight += other.weight

    @staticmethod
    def on_device(sums: DeviceSums, chosen: Float[np.ndarray, " F"]) -> Moments:
        """The moments of some folds: those whose share is 1, not 0."""
        gram, following, mean, reward, weight = sums.totals(chosen)
        return MomentSums(gram, mean, reward, weight).moments(following)

    def moments(self, following: Float[np.ndarray, "K K"]) -> Moments:
        """With the sum over following rows; all sums become means, in place."""
        total = self.weight or 1.0
        for sums in (self.gram, following, self.mean, self.reward):
            sums /= total
        return Moments(self.gram, following, self.mean, None, self.reward, self.weight)


def weighted_sum(rows: Rows, weights: np.ndarray, width: int) -> np.ndarray:
    """Σ_i weights_i x_i."""
    if not isinstance(rows, BlockRows):
        return np.asarray(rows.matrix(width).T @ weights)
    total = ((rows.weights * weights[:, None]).T @ rows.base).ravel()
    return total if rows.absorbing is None else np.append(total, rows.absorbing @ weights)


def mean_start(log: LogDesign, chosen: Bool[np.ndarray, " n0"] | None = None) -> Float[np.ndarray, " K"] | None:
    """The mean initial row b = Σ_i w_i x̄0_i / Σ_i w_i of a log, or of the states chosen; None without any."""
    if log.initial is None:
        return None
    weights = log.initial_weights if chosen is None else np.where(chosen, log.initial_weights, 0.0)
    return weighted_sum(log.initial, weights, log.width) / weights.sum()
