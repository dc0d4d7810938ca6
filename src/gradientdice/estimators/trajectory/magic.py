"""MAGIC: a blend of the j-step returns between a model's value and WDR,

    g_j = (1−γ) (E[V(s_0)] + Σ_{t<j} γᵗ Σ_i ωⁱ_t (rⁱ_t + γV(sⁱ_{t+1}) − Q(sⁱ_t,aⁱ_t))),   j = 0, …, H,
    x = argmin over the simplex of xᵀ(Ω + bbᵀ)x,   value = Σ_j x_j g_j,

with ω the importance weights β_{0:t} normalised over episodes, Ω the covariance of the g_j, and b_j the distance of g_j
from a bootstrap interval of g_H, which is WDR: a bound on the bias that the model has brought into it. So the blend
leans on the model where the weights are noisy and the model is not seen to be wrong.

The paper estimates Ω from the episodes' summands; here it is that of their influence values, since a normalised sum is
a quotient of two. V and Q are LSTDQ's, fitted to the other folds of episodes. At a cut V is used for what follows, as
in WDR. The blend depends on the data in a way that no influence value shows, so that there is no interval.

It needs whole trajectories, discrete actions, μ's probabilities (logged, or estimated by `BehaviorCloning`), and a
discount below 1. Weights may differ between episodes, not within one.

References:
    Thomas and Brunskill, Data-Efficient Off-Policy Policy Evaluation for Reinforcement Learning, ICML 2016, sections
    6 to 8 and their algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize, nnls

from gradientdice.base.errors import InputError, require_count, require_number
from gradientdice.dice.saddle import Solver
from gradientdice.estimators.answer import Answer, Declares
from gradientdice.estimators.behavior import behavior_notes, require_behavior
from gradientdice.estimators.behavior_cloning import BehaviorCloning
from gradientdice.estimators.doubly_robust.cross_fitted_q import CrossFittedQ
from gradientdice.estimators.needs import require_needs
from gradientdice.estimators.trajectory.doubly_robust import bootstrap_notes, step_weights
from gradientdice.estimators.trajectory.step_weights import StepWeights
from gradientdice.log.units import Units
from gradientdice.problem.problem import Problem, describe
from gradientdice.statistics.evidence import Evidence
from gradientdice.statistics.influence import centred_shares

# By what share the blend's objective may be lowered still.
BLEND_TOLERANCE = 1e-6


@dataclass(frozen=True)
class MAGIC(Declares):
    """Model and guided importance sampling combined.

    Attributes:
        discount: γ, below 1.
        behavior: how to estimate μ where the log does not have it.
        folds: of episodes, for Q.
        returns: how many different lengths j are blended at most, 0 and H among them.
        replications: of the bootstrap of WDR.
        bias_confidence: of its interval.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = gd.mdp.boyan_chain("continuing"), np.tile([0.4, 0.6], (13, 1))
        >>> data = mdp.rollout(
        ...     np.full((13, 2), 0.5), episodes=500, horizon=10, rng=np.random.default_rng(0)
        ... )
        >>> estimate = gd.evaluate(data, gd.TabularPolicy(target), gd.MAGIC(0.9))
        >>> bool(abs(estimate.value - mdp.value(target, 0.9)) < 0.1), estimate.interval
        (True, None)
    """

    family = "trajectories"
    reference = "Thomas and Brunskill, ICML 2016"
    discounted_only = True
    needs_behavior = True
    whole_trajectories = True

    discount: float
    behavior: BehaviorCloning | None = None
    folds: int = 4
    returns: int = 25
    replications: int = 200
    bias_confidence: float = 0.9

    def __post_init__(self) -> None:
        require_number("discount", self.discount, low=0, high=1)
        require_behavior(self.behavior)
        require_count("folds", self.folds, low=2)
        require_count("returns", self.returns, low=2)
        require_count("replications", self.replications, low=20)
        require_number("bias_confidence", self.bias_confidence, low=0, high=1)

    def answer(self, problem: Problem, solver: Solver | None = None) -> Answer:
        """The value and the weight of each row's Bellman residual."""
        require_needs(self, problem, solver)
        data = problem.data
        weights, cautions = step_weights("MAGIC", self.discount, problem, self.behavior, normalised=True)
        units = data.units
        if units.count < 2:
            raise InputError("MAGIC weighs noise against bias over episodes, and the log has one: give more.")
        q = CrossFittedQ.of("MAGIC", problem, self.discount, self.folds)
        lengths = _lengths(weights.episodes.horizon, self.returns, self.discount)
        values = step_returns(weights, q, lengths)
        covariance = returns_covariance(weights, q, lengths, units)
        drawn = resampled_wdr(weights, q, self.replications, np.random.default_rng(problem.seed), units)
        tail = (1 - self.bias_confidence) / 2
        low, high = np.quantile(drawn, [tail, 1 - tail])
        # The estimate itself belongs to its interval, however skewed the bootstrap is.
        low, high = min(low, values[-1]), max(high, values[-1])
        bias = np.maximum(low - values, 0.0) + np.maximum(values - high, 0.0)
        blend = simplex_minimum(covariance + np.outer(bias, bias))
        # A row at time t is in all returns that are longer than t.
        reaching = np.append(np.cumsum(blend[::-1])[::-1], 0.0)
        used = reaching[np.searchsorted(lengths, weights.episodes.step, side="right")]
        ratio = used * weights.ratio(data.row_weights)
        model = float(blend[0])
        return Answer(
            value=float(blend @ values),
            ratio=ratio,
            solution=q.solution,
            # Normalised weights sum to 1 at each time, and from j on V has what is left.
            evidence=Evidence(mean_ratio=1.0, density=weights.density),
            functions=describe(q.functions),
            status=q.solution.status,
            cautions=cautions,
            notes=(
                *behavior_notes(data, self.behavior),
                *bootstrap_notes(weights),
                f"the blend gives {model:.2g} to the model alone and {blend[-1]:.2g} to WDR",
            ),
        )


def _lengths(horizon: int, most: int, discount: float) -> np.ndarray:
    """0 to the horizon, all of them or `most`, which are then as far apart as discounted time says."""
    if horizon + 1 <= most:
        return np.arange(horizon + 1)
    steps = np.arange(horizon + 1)
    covered = 1 - discount**steps if 0 < discount else np.minimum(steps, 1.0)
    wanted = np.linspace(0, covered[-1], most)
    return np.unique(np.append(np.searchsorted(covered, wanted - 1e-12), [0, horizon]))


def step_returns(weights: StepWeights, q: CrossFittedQ, lengths: np.ndarray) -> Float[np.ndarray, " J"]:
    """g_j for each length j."""
    counts = weights.episodes.weights
    start = (1 - weights.discount) * float(counts @ q.first_values) / counts.sum()
    steps = np.append(0.0, np.cumsum(weights.means(q.residual)))
    return start + steps[lengths]


def returns_covariance(
    weights: StepWeights, q: CrossFittedQ, lengths: np.ndarray, units: Units
) -> Float[np.ndarray, "J J"]:
    """Ω, from the influence values of the independent units, episodes and their copies, on each g_j."""
    episodes = weights.episodes
    start = (1 - weights.discount) * q.first_values
    influence = np.zeros((units.count, len(lengths)))
    first = units.sums(centred_shares(start, episodes.weights), episodes.first)
    for number, length in enumerate(lengths):
        influence[:, number] = first + units.sums(weights.shares(np.where(episodes.step < length, q.residual, 0.0)))
    centred = influence - influence.mean(axis=0)
    return units.count / (units.count - 1) * centred.T @ centred


def resampled_wdr(
    weights: StepWeights, q: CrossFittedQ, replications: int, rng: np.random.Generator, units: Units
) -> Float[np.ndarray, " replications"]:
    """WDR of resampled units, that is episodes with their copies, Q being as it is."""
    episodes, size = weights.episodes, units.count
    times = rng.multinomial(size, np.full(size, 1 / size), size=replications).astype(np.float64)
    # An episode that belongs to no unit counts 0 times, however often it is drawn.
    drawn = times[:, units.rows[episodes.first]]
    counts = drawn * episodes.weights
    sums = counts.sum(axis=1)
    values = (1 - weights.discount) * np.divide(
        counts @ q.first_values, sums, out=np.zeros(replications), where=sums > 0
    )
    ended = np.zeros(replications)  # the weight of what is over, in units of S_t
    for step, rows in episodes.forwards():
        own = drawn[:, episodes.index[rows]]
        alive = own @ weights.rows[rows]
        shown = own @ (weights.rows[rows] * q.residual[rows])
        total = alive + ended
        mass = (1 - weights.discount) * weights.discount**step
        # Where no drawn episode has any weight, nothing is known of this time.
        values += mass * np.divide(shown, total, out=np.zeros(replications), where=total > 0)
        over = episodes.length[episodes.index[rows]] == step + 1
        ended += own[:, over] @ weights.rows[rows[over]]
        ended *= np.exp(weights.log_total[step] - weights.log_total[step + 1])
    return values


def simplex_minimum(matrix: Float[np.ndarray, "J J"]) -> Float[np.ndarray, " J"]:
    """The x ≥ 0 with Σx = 1 that minimises xᵀMx, for a positive semidefinite M.

    With M = LᵀL, nonnegative least squares on ‖Lx‖² + (Σx − 1)² has the same conditions up to x's size. The answer is
    checked: at the optimum no step towards a single return lowers xᵀMx.
    """
    spread = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    if spread.min() <= 1e-150:
        # Something that is known exactly; of several, the longest return.
        return np.eye(len(matrix))[np.flatnonzero(spread <= 1e-150)[-1]]
    # Variances differ by many orders: in units of the spreads M is a correlation matrix, and Σx = 1 reads sizes·z = 1.
    scaled, sizes = matrix / np.outer(spread, spread), spread.min() / spread
    eigenvalues, vectors = np.linalg.eigh(scaled)
    root = np.sqrt(np.maximum(eigenvalues, 0.0))[:, None] * vectors.T
    candidates = [np.eye(len(matrix))[np.argmin(spread)]]
    try:
        candidates.append(nnls(np.vstack([root, sizes]), np.append(np.zeros(len(matrix)), 1.0))[0])
    except RuntimeError:
        # Too many iterations: a general solver, from the best single return.
        found = minimize(
            lambda z: (z @ scaled @ z, 2 * scaled @ z),
            candidates[0],
            jac=True,
            bounds=[(0, None)] * len(matrix),
            constraints={"type": "eq", "fun": lambda z: sizes @ z - 1, "jac": lambda z: sizes},
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 1000},
        )
        candidates.append(np.maximum(found.x, 0.0))
    z = min((z / (sizes @ z) for z in candidates if sizes @ z > 0), key=lambda z: float(z @ scaled @ z))
    blend = z * sizes / (z @ sizes)
    if _best_step(matrix / spread.min() ** 2, blend) > BLEND_TOLERANCE:
        raise InputError("MAGIC found no blend of its returns: use WDR, or fewer returns=.")
    return blend


def _best_step(matrix: np.ndarray, x: np.ndarray) -> float:
    """By what share the best step from x towards a single return would lower xᵀMx; 0 at the optimum."""
    gradient = matrix @ x
    value = float(x @ gradient)
    curvature = np.diag(matrix) - 2 * gradient + value
    gain = np.maximum(value - gradient, 0.0) ** 2 / np.maximum(curvature, 1e-300)
    return float(gain.max()) / value if value > 0 else 0.0
