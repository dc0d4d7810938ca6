"""The black-box estimator: weights on the log whose image under the target policy is the same weighted log,

    min_w  ‖ Σ_i w_i (k(z'_i, ·) − k(z_i, ·)) ‖²_H  =  min_w  wᵀGw,    w ≥ 0,  Σ_i w_i = 1,

    G_ij = k(z'_i,z'_j) − k(z'_i,z_j) − k(z_i,z'_j) + k(z_i,z_j),    z = (s,a),  z' = (s', a' ~ π),

where k(z', ·) is the mean over the policy's actions: the squared maximum mean discrepancy between a weighted log and
its own next step. The value is Σ w_i r_i, the average reward. With features φ of the kernel and Δ = φ(z) − φ̄(z'),
G = ΔΔᵀ, and no n × n matrix is made: the dual has one variable per feature, and its gap to the programme is reported.

A ratio is a function of (s,a), and so must the weights be. Over a table there is one weight per pair, shared by its
rows. With other functions w = x·α is of any sign in their span, with Σ w = 1: a closed form, the same as MWL at
discount 1.
The programme as printed has a weight of its own for each row (`row_weights=True`, or `positive=True` without a table).
Such weights can prefer rows by where chance led them: if transitions are random, the fixed point is another chain's
average reward, and the target's only if the next state follows from (s,a). Many weights then do equally well, and the
ridge chooses those nearest to the log's own.

References:
    Mousavi, Li, Liu and Zhou, Black-box Off-policy Estimation for Infinite-Horizon Reinforcement Learning, ICLR 2020.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradientdice.base.errors import require_flag, require_number, starts_missing
from gradientdice.dice.hinge import HingeProblem, minimise
from gradientdice.dice.linear_systems import FactoredLeastSquares
from gradientdice.dice.saddle import LeastSquares, Solver
from gradientdice.dice.solution import Solution, Status
from gradientdice.estimators.answer import Answer, Declares
from gradientdice.estimators.minimax.mwl import MWL
from gradientdice.estimators.minimax.pairing import Pairing
from gradientdice.estimators.needs import require_needs
from gradientdice.functions import LinearFunctions
from gradientdice.functions.rows import Rows
from gradientdice.problem.entrance import require_functions
from gradientdice.problem.logged import require_logged
from gradientdice.problem.problem import Problem, describe
from gradientdice.problem.stream import LogDesign
from gradientdice.statistics.evidence import Evidence
from gradientdice.statistics.influence import Influence

# A gap above this share of the objective is no solution.
LARGEST_GAP = 1e-6


@dataclass(frozen=True)
class BlackBox(Declares):
    """The black-box estimator of the average reward.

    Attributes:
        discount: must be 1.
        kernel: whose features are matched; by default the functions given. Random Fourier or Nyström features
            approximate a Gaussian kernel in O(nK) memory; a table is the kernel that is 1 where two pairs are the same.
        positive: whether the weights are nonnegative; if not, they are in the span of the functions. By default they
            are with a table.
        row_weights: whether each row has a weight of its own even where a table could give one per pair.
        ridge: ε in wᵀGw + ε Σ w_i² / m_i, with m_i the log's own weights: it makes the weights unique, and biases them
            by O(ε).

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = gd.mdp.boyan_chain("continuing"), np.tile([0.1, 0.9], (13, 1))
        >>> data = mdp.sample(20_000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
        >>> estimate = gd.evaluate(data, gd.TabularPolicy(target), gd.BlackBox(1.0))
        >>> low, high = estimate.interval
        >>> bool(low < mdp.value(target, 1.0) < high)
        True
    """

    family = "minimax"
    reference = "Mousavi, Li, Liu and Zhou, ICLR 2020"
    average_only = True

    discount: float
    kernel: LinearFunctions | None = None
    positive: bool | None = None
    row_weights: bool = False
    ridge: float = 1e-10

    def __post_init__(self) -> None:
        require_number("discount", self.discount, low=0, high=1)
        require_functions(self.kernel, "kernel")
        if self.positive is not None:
            require_flag("positive", self.positive)
        require_flag("row_weights", self.row_weights)
        require_number("ridge", self.ridge, low=0, open_low=True)

    def answer(self, problem: Problem, solver: Solver | None = None) -> Answer:
        """The average reward, with its weights; influence values where there is one weight per pair."""
        require_needs(self, problem, solver)
        table = problem.support is not None
        if not (table or self.row_weights if self.positive is None else self.positive):
            return MWL(1.0, self.kernel).answer(problem)
        if table and not self.row_weights:
            return self._by_pair(Pairing.create(problem, 1.0, critic=self.kernel))
        own = problem.rows
        return self._by_row(own if self.kernel is None else LogDesign(own.data, own.policy, self.kernel))

    def _by_pair(self, pairing: Pairing) -> Answer:
        """One weight α_j per pair: F = E[Δ 1_jᵀ] and m = E[1_j], min ½‖Fα‖² + ½ε Σ m_j α_j² with mᵀα = 1, α ≥ 0.

        Where α > 0 this is least squares, with influence values as MWL has them and −ε α_j q_j for the ridge.
        """
        logged = np.flatnonzero(pairing.mean > 0)
        mass = pairing.mean[logged]
        found = simplex_weights(pairing.flow[:, logged].T / mass[:, None], mass, self.ridge)
        used = logged[found.weights > 0]
        alpha = np.zeros(len(pairing.mean))
        alpha[used] = found.weights[found.weights > 0] / pairing.mean[used]

        flow, mean = pairing.flow[:, used], pairing.mean[used]
        rows = np.vstack([flow, np.diag(np.sqrt(self.ridge * mean))])
        target = np.zeros(len(rows))
        factored = FactoredLeastSquares(LeastSquares(rows, target, mean))
        q = np.zeros_like(alpha)
        q[used] = factored.apply_inverse(pairing.reward[used])
        e, p = -pairing.flow @ alpha, pairing.flow @ q
        length = float(mean @ mean)
        force = float(mean @ (flow.T @ e - self.ridge * mean * alpha[used])) / length
        gain = float(mean @ (pairing.reward[used] - flow.T @ p - self.ridge * mean * q[used])) / length
        weights, critic = np.column_stack([alpha, q]), np.column_stack([p, e])
        (tau, slope), _, (change, out) = (part.T for part in pairing.over_rows(weights, critic))
        rewards = pairing.ratio.data.rewards
        raw = tau * rewards + slope * out - change * tau - force * slope - gain * tau - self.ridge * tau * slope
        direction = p * float(pairing.ended @ alpha) - e * float(pairing.ended @ q)
        shares: Influence = pairing.shares(raw, direction, tau, rewards - change - gain)
        stats = {**found.stats, "condition_number": factored.condition_number, "rank": len(used)}
        status = found.status if found.status is not Status.OK else factored.status
        notes = ()
        if len(used) < len(logged):
            notes = ("some weights are 0 by force; the interval takes it that they would stay there",)
        return Answer(
            value=float(pairing.reward @ alpha),
            influence=shares,
            ratio=tau,
            solution=Solution(alpha, e, force, status, stats),
            evidence=Evidence(mean_ratio=float(pairing.mean @ alpha)),
            functions=describe(pairing.ratio.functions),
            status=status,
            notes=notes,
        )

    def _by_row(self, log: LogDesign) -> Answer:
        """One weight per row."""
        own = log.data.row_weights
        mass, changes = own / own.sum(), row_changes(log)
        counted = mass > 0
        found = simplex_weights(changes if counted.all() else changes[counted], mass[counted], self.ridge)
        ratio = np.zeros(len(mass))
        ratio[counted] = found.weights / mass[counted]
        notes = (
            "each row has a weight of its own: where transitions are random the weights can follow chance, and the "
            "value is then not the target's; positive=False makes them a function of (s,a), with an interval",
        )
        stats = {**found.stats, "rank": int(np.count_nonzero(found.weights))}
        solution = Solution(found.weights, found.critic, found.multiplier, found.status, stats)
        value = float(found.weights @ log.data.rewards[counted])
        return Answer(
            value=value,
            ratio=ratio,
            solution=solution,
            evidence=Evidence(mean_ratio=1.0),
            functions=describe(log.functions),
            status=found.status,
            cautions=notes,
        )


@dataclass(frozen=True, eq=False)
class SimplexWeights:
    """The weights of the programme, and the proof that they solve it.

    Attributes:
        weights: w, on the simplex.
        critic: the function −Σ w_i Δ_i in the kernel's features, which sees most of what is left.
        multiplier: that of Σ w = 1.
        stats: objective, gap (to a lower bound from the dual), steps.
        status: OK if the gap is small against the objective.
    """

    weights: Float[np.ndarray, " n"]
    critic: Float[np.ndarray, " K"]
    multiplier: float
    stats: dict[str, float]
    status: Status


def simplex_weights(changes: Float[np.ndarray, "n K"], mass: Float[np.ndarray, " n"], ridge: float) -> SimplexWeights:
    """The w on the simplex with the least ½‖Σ w_i Δ_i‖² + ½ε Σ w_i² / m_i.

    Its dual, in units of ε, is min_{s,l} ½ε‖s‖² − l + ½ Σ m_i (l − Δ_iᵀs)₊², with w_i = m_i (l − Δ_iᵀs)₊ and
    Σ w_iΔ_i = εs. The ridge comes down from 1 by steps, each of which starts where the last one ended.
    """
    n, size = changes.shape
    features = np.concatenate([changes, np.full((n, 1), -1.0)], axis=1)
    point, steps, epsilon = np.append(np.zeros(size), 1.0), 0, max(1.0, ridge)
    while True:
        quadratic = np.diag(np.append(np.full(size, epsilon), 0.0))
        linear = np.append(np.zeros(size), -1.0)
        problem = HingeProblem(quadratic, linear, features, np.zeros(n), mass)
        found = minimise(problem, point)
        point, steps = found.point, steps + found.steps
        if epsilon <= ridge:
            break
        epsilon = max(ridge, 0.01 * epsilon)
    weights = found.multipliers / found.multipliers.sum()
    left = changes.T @ weights
    objective = 0.5 * float(left @ left) + 0.5 * ridge * float(np.sum(weights**2 / mass))
    gap = max(0.0, objective + ridge * problem.value(point))
    status = Status.OK if gap <= LARGEST_GAP * objective else Status.ILL_CONDITIONED
    stats = {"objective": objective, "duality_gap": gap, "steps": float(steps)}
    return SimplexWeights(weights, -left, float(ridge * point[-1]), stats, status)


def row_changes(log: LogDesign) -> Float[np.ndarray, "n K"]:
    """Δ = φ(z) − φ̄(z') of every row, (n, K); after an end z' is an initial state."""
    width = log.width - log.absorbing
    start = None
    if log.absorbing:
        if log.initial is None:
            raise starts_missing(1.0)
        start = np.average(_dense(log.initial, log.width)[:, :width], axis=0, weights=log.initial_weights)
    changes, logged, reached = np.empty((len(log.data), width)), np.zeros(width), np.zeros(width)
    for rows, design in log.chunks():
        current = _dense(design.current, design.width)[:, :width]
        following = _dense(design.following, design.width)[:, :width]
        if start is not None:
            following[design.ended] = start
        logged += design.weights @ current**2
        reached += design.weights @ np.abs(following)
        np.subtract(current, following, out=changes[rows])
    require_logged(log.functions, logged, reached)
    return changes


def _dense(rows: Rows, width: int) -> np.ndarray:
    matrix = rows.matrix(width)
    return np.array(matrix) if isinstance(matrix, np.ndarray) else matrix.toarray()
