"""Finite Markov decision processes with their exact occupancy, ratio, value and Q: the oracle of every test.

Transitions are stored densely (`TabularMDP`) or sparsely (`SparseMDP`: many states, few of which follow any one).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse

from gradientdice.base.arrays import as_floats, require_memory, require_rng
from gradientdice.base.errors import InputError, require_count, require_distributions, require_finite, require_number
from gradientdice.log.transitions import Transitions
from gradientdice.mdp.markov_chains import Chain, differential_values, solve_chain, stationary_distribution


@dataclass(frozen=True, eq=False)
class RowDraws:
    """Draws from many finite distributions at once, by inverting all their distribution functions in one search.

    The distribution functions of a matrix's rows are stacked: row r occupies (r, r + 1].

    Attributes:
        stacked: r + F_r at each stored entry, in row order.
        outcomes: the column of each stored entry.
    """

    stacked: np.ndarray
    outcomes: np.ndarray

    @classmethod
    def dense(cls, distributions: np.ndarray) -> RowDraws:
        """Draws from the rows of an array (rows, outcomes)."""
        cumulative = np.cumsum(distributions, axis=1)
        cumulative /= cumulative[:, -1:]
        rows, outcomes = distributions.shape
        return cls((cumulative + np.arange(rows)[:, None]).ravel(), np.tile(np.arange(outcomes), rows))

    @classmethod
    def sparse(cls, distributions: csr_array) -> RowDraws:
        """Draws from the rows of a sparse matrix, none of them empty, in memory proportional to its entries."""
        lengths = np.diff(distributions.indptr)
        row = np.repeat(np.arange(len(lengths)), lengths)
        running = np.concatenate([[0.0], np.cumsum(distributions.data)])
        start, end = running[distributions.indptr[:-1]], running[distributions.indptr[1:]]
        stacked = row + (running[1:] - start[row]) / (end - start)[row]
        return cls(stacked, distributions.indices)

    def draw(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One outcome for each given row."""
        # Rounding can push row + u up to row + 1 when u is within an ulp of 1.
        position = np.minimum(rows + rng.random(len(rows)), np.nextafter(rows + 1.0, 0))
        return self.outcomes[np.searchsorted(self.stacked, position, side="right")].astype(np.int64)


def require_mdp(mdp: object, kind: type[FiniteMDP] | None = None) -> None:
    """Raise unless this is a finite MDP, and of this kind if a kind is given."""
    kind = kind or FiniteMDP
    if not isinstance(mdp, kind):
        what = "a TabularMDP or SparseMDP" if kind is FiniteMDP else f"a {kind.__name__}"
        raise InputError(f"mdp must be {what}, not {mdp!r:.60}.")


class FiniteMDP(ABC):
    """A Markov decision process with finitely many states and actions; its storage is the subclass's choice.

    Policies are (S, A) arrays of probabilities or anything that converts to one, as `TabularPolicy` does.
    State-action pairs are numbered state-major: pair = state · A + action.

    Attributes:
        reward: E[r|s,a], shape (S, A).
        initial: the distribution of the first state, shape (S,).
    """

    reward: Float[np.ndarray, "S A"]
    initial: Float[np.ndarray, " S"]

    @property
    def num_states(self) -> int:
        """The number of states, S."""
        return self.reward.shape[0]

    @property
    def num_actions(self) -> int:
        """The number of actions, A."""
        return self.reward.shape[1]

    @abstractmethod
    def expected_next(self, values: Float[np.ndarray, " S"]) -> Float[np.ndarray, "S A"]:
        """Expected value of the next state, Σ_s' p(s'|s,a) values(s')."""

    @abstractmethod
    def state_chain(self, policy: ArrayLike) -> Chain:
        """The chain of states under a policy, P_π(s,s') = Σ_a π(a|s) p(s'|s,a), stored as the transitions are."""

    @abstractmethod
    def _next_draws(self) -> RowDraws:
        """Draws of the next state, one row per pair."""

    def occupancy(self, policy: ArrayLike, discount: float) -> Float[np.ndarray, "S A"]:
        """The occupancy d_γ(s,a) = (1−γ) Σ_t γᵗ Pr(s_t=s, a_t=a); at γ = 1 the stationary distribution."""
        discount = require_number("discount", discount, low=0, high=1)
        probabilities = self._policy(policy)
        chain = self.state_chain(probabilities)
        if discount == 1:
            states = stationary_distribution(chain)
        else:
            states = solve_chain(chain, discount, (1 - discount) * self.initial, transposed=True)
        return states[:, None] * probabilities

    def ratio(self, policy: ArrayLike, discount: float, data_dist: ArrayLike) -> Float[np.ndarray, "S A"]:
        """The density ratio τ*(s,a) = d_γ(s,a) / d_μ(s,a), which the estimators estimate."""
        data = self._data_dist(data_dist)
        occupancy = self.occupancy(policy, discount)
        uncovered = (data == 0) & (occupancy > 0)
        if uncovered.any():
            state, action = np.argwhere(uncovered)[0]
            raise InputError(
                f"The policy visits state {state} with action {action}, to which data_dist gives probability 0: "
                "there is no density ratio there. Use a data_dist that covers the policy."
            )
        return np.divide(occupancy, data, out=np.zeros_like(occupancy), where=data > 0)

    def value(self, policy: ArrayLike, discount: float) -> float:
        """The value ρ_γ: (1−γ) E[Σ_t γᵗ r_t] for γ < 1, the average reward at γ = 1."""
        return float(np.sum(self.occupancy(policy, discount) * self.reward))

    def q_values(self, policy: ArrayLike, discount: float) -> Float[np.ndarray, "S A"]:
        """The Q-function Q(s,a) = E[Σ_t γᵗ r_t | s, a]; at γ = 1 the differential Q with mean 0 under the occupancy."""
        discount = require_number("discount", discount, low=0, high=1)
        probabilities = self._policy(policy)
        chain = self.state_chain(probabilities)
        state_reward = np.sum(probabilities * self.reward, axis=1)
        if discount < 1:
            return self.reward + discount * self.expected_next(solve_chain(chain, discount, state_reward))
        stationary = stationary_distribution(chain)
        values = differential_values(chain, state_reward, stationary)
        return self.reward - float(stationary @ state_reward) + self.expected_next(values)

    def sample(self, n: int, data_dist: ArrayLike, rng: np.random.Generator) -> Transitions:
        """Draw n independent transitions with (s, a) ~ data_dist, and n initial states from `initial`."""
        n = require_count("n", n)
        require_rng(rng)
        require_memory("The sample", n, remedy="Draw fewer, several times.")
        pairs = rng.choice(self.num_states * self.num_actions, size=n, p=self._data_dist(data_dist).ravel())
        return Transitions(
            states=pairs // self.num_actions,
            actions=pairs % self.num_actions,
            rewards=self.reward.ravel()[pairs],
            next_states=self._next_draws().draw(pairs, rng),
            initial_states=rng.choice(self.num_states, size=n, p=self.initial),
        )

    def rollout(
        self,
        policy: ArrayLike,
        episodes: int,
        horizon: int,
        rng: np.random.Generator,
        *,
        terminal: int | None = None,
        noise: float = 0.0,
    ) -> Transitions:
        """Run a policy for some episodes of at most `horizon` steps each.

        Args:
            policy: (S, A) probabilities.
            episodes: how many episodes start.
            horizon: the number of steps after which an episode is cut: its last step is then truncated.
            rng: the source of the draws.
            terminal: the first of the states that end an episode; they must lead only to each other and pay nothing.
                The step into one is terminated and nothing after it is logged. None if episodes do not end.
            noise: the standard deviation of the rewards around their means.
        """
        episodes, horizon = require_count("episodes", episodes), require_count("horizon", horizon)
        noise = require_number("noise", noise, low=0)
        require_rng(rng)
        if terminal is None:
            require_memory("The rollout", episodes, horizon, remedy="Run fewer episodes or steps.")
        probabilities = self._policy(policy)
        self._check_terminal(terminal)
        action_draws, next_draws = RowDraws.dense(probabilities), self._next_draws()
        active, state = np.arange(episodes), rng.choice(self.num_states, size=episodes, p=self.initial)
        steps: list[tuple[np.ndarray, ...]] = []
        for step in range(horizon):
            action = action_draws.draw(state, rng)
            following = next_draws.draw(state * self.num_actions + action, rng)
            ended = np.zeros(len(active), dtype=bool) if terminal is None else following >= terminal
            cut = ~ended if step == horizon - 1 else np.zeros(len(active), dtype=bool)
            steps.append((active, state, action, following, ended, cut))
            active, state = active[~ended], following[~ended]
            if len(active) == 0:
                break
        columns = [np.concatenate(column) for column in zip(*steps, strict=True)]
        # The steps came in order of time: a stable sort by episode keeps that order within each.
        order = np.argsort(columns[0], kind="stable")
        episode, states, actions, next_states, terminated, truncated = (column[order] for column in columns)
        rewards = self.reward[states, actions]
        return Transitions(
            states=states,
            actions=actions,
            rewards=rewards + noise * rng.normal(size=len(rewards)) if noise > 0 else rewards,
            next_states=next_states,
            terminated=None if terminal is None else terminated,
            truncated=truncated,
            episodes=episode,
            behavior_log_probs=np.log(probabilities[states, actions]),
        )

    def _check_terminal(self, terminal: int | None) -> None:
        if terminal is None:
            return
        terminal = require_count("terminal", terminal)
        if terminal >= self.num_states:
            raise InputError(
                f"terminal must be the first of the states that end an episode, at most {self.num_states - 1}, not "
                f"{terminal}. Leave it out if episodes do not end."
            )
        ends = np.arange(self.num_states) >= terminal
        stays = self.expected_next(ends.astype(np.float64))[terminal:]
        leaks = (stays < 1 - 1e-9).any(axis=1) | (self.reward[terminal:] != 0).any(axis=1)
        if leaks.any():
            raise InputError(
                f"State {terminal + int(np.argmax(leaks))} is terminal but pays, or leads to a state that is not. "
                "Number the states so that those from `terminal` on are absorbing and pay nothing."
            )
        if self.initial[ends].sum() > 0:
            raise InputError(
                f"initial gives probability {self.initial[ends].sum():.3g} to terminal states: such an episode has no "
                "steps to log. Start only in states before `terminal`."
            )

    def _freeze(self, states: int, actions: int) -> None:
        """Check rewards and initial distribution, and store copies of them that cannot be written."""
        reward, initial = (np.array(as_floats(name, getattr(self, name))) for name in ("reward", "initial"))
        if reward.shape != (states, actions):
            raise InputError(f"reward must have shape {(states, actions)} to match transition, not {reward.shape}.")
        if initial.shape != (states,):
            raise InputError(f"initial must have shape {(states,)} to match transition, not {initial.shape}.")
        require_finite("reward", reward)
        require_distributions("initial", initial[None])
        initial /= initial.sum()
        for name, array in (("reward", reward), ("initial", initial)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def _policy(self, policy: ArrayLike) -> np.ndarray:
        probabilities = as_floats("policy", policy)
        if probabilities.shape != self.reward.shape:
            raise InputError(
                f"policy must have shape {self.reward.shape} (states, actions), not {probabilities.shape}."
            )
        require_distributions("policy", probabilities)
        return probabilities / probabilities.sum(axis=1, keepdims=True)

    def _data_dist(self, data_dist: ArrayLike) -> np.ndarray:
        data = as_floats("data_dist", data_dist)
        if data.shape != self.reward.shape:
            raise InputError(f"data_dist must have shape {self.reward.shape} (states, actions), not {data.shape}.")
        require_distributions("data_dist", data.reshape(1, -1))
        return data / data.sum()


@dataclass(frozen=True, eq=False)
class TabularMDP(FiniteMDP):
    """A Markov decision process with finitely many states and actions.

    Policies are (S, A) arrays of probabilities or anything that converts to one, as `TabularPolicy` does.
    State-action pairs are numbered state-major: pair = state · A + action.

    Attributes:
        transition: p(s'|s,a), shape (S, A, S).
        reward: E[r|s,a], shape (S, A).
        initial: the distribution of the first state, shape (S,).

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp = gd.mdp.boyan_chain("continuing")
        >>> target = np.tile([0.1, 0.9], (13, 1))
        >>> round(mdp.value(target, discount=1.0), 4)
        -2.2037
    """

    transition: Float[np.ndarray, "S A S"]
    reward: Float[np.ndarray, "S A"]
    initial: Float[np.ndarray, " S"]

    if TYPE_CHECKING:

        def __init__(self, transition: ArrayLike, reward: ArrayLike, initial: ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        transition = np.array(as_floats("transition", self.transition))
        if transition.ndim != 3 or transition.shape[0] != transition.shape[2]:
            raise InputError(f"transition must have shape (S, A, S), not {transition.shape}.")
        self._freeze(*transition.shape[:2])
        require_distributions("transition", transition)
        transition /= transition.sum(axis=-1, keepdims=True)
        transition.setflags(write=False)
        object.__setattr__(self, "transition", transition)

    def expected_next(self, values: Float[np.ndarray, " S"]) -> Float[np.ndarray, "S A"]:
        """Expected value of the next state, Σ_s' p(s'|s,a) values(s')."""
        return self.transition @ values

    def state_chain(self, policy: ArrayLike) -> Float[np.ndarray, "S S"]:
        """The chain of states under a policy, P_π(s,s') = Σ_a π(a|s) p(s'|s,a)."""
        return np.einsum("sa,sat->st", self._policy(policy), self.transition)

    def pair_chain(self, policy: ArrayLike) -> Float[np.ndarray, "SA SA"]:
        """The chain of pairs under a policy, P_π((s,a),(s',a')) = p(s'|s,a) π(a'|s'), state-major."""
        pairs = self.num_states * self.num_actions
        chain = self.transition[:, :, :, None] * self._policy(policy)[None, None]
        return chain.reshape(pairs, pairs)

    def _next_draws(self) -> RowDraws:
        return RowDraws.dense(self.transition.reshape(-1, self.num_states))


@dataclass(frozen=True, eq=False)
class SparseMDP(FiniteMDP):
    """A `TabularMDP` that stores only the transitions that can happen; memory and time follow their number.

    Large systems are solved iteratively, to a residual near rounding that is checked: an answer that did not
    converge is an error and not a number.

    Attributes:
        transition: p(s'|s,a) as a sparse matrix of shape (S·A, S), one row per pair, state-major.
        reward: E[r|s,a], shape (S, A).
        initial: the distribution of the first state, shape (S,).

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> from scipy.sparse import csr_array
        >>> ring = csr_array((np.ones(1000), (np.arange(1000), (np.arange(1000) + 1) % 1000)))
        >>> mdp = gd.mdp.SparseMDP(ring, np.arange(1000.0)[:, None], np.full(1000, 1 / 1000))
        >>> round(mdp.value(np.ones((1000, 1)), discount=1.0), 6)
        499.5
    """

    transition: csr_array
    reward: Float[np.ndarray, "S A"]
    initial: Float[np.ndarray, " S"]

    if TYPE_CHECKING:

        def __init__(self, transition: ArrayLike | csr_array, reward: ArrayLike, initial: ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        if isinstance(self.transition, np.ndarray) and self.transition.ndim == 3:
            raise InputError("transition must have shape (S·A, S): reshape a dense (S, A, S) array, or use TabularMDP.")
        given = self.transition if issparse(self.transition) else as_floats("transition", self.transition)
        if not np.issubdtype(given.dtype, np.number) or np.iscomplexobj(given):
            raise InputError(f"transition must hold numbers, not {given.dtype}.")
        if given.ndim != 2:
            raise InputError(f"transition must have shape (S·A, S), one row per state-action pair, not {given.shape}.")
        transition = csr_array(given, dtype=np.float64, copy=True)
        shape = transition.shape or ()
        pairs, states = shape if len(shape) == 2 else (0, 0)
        if states == 0 or pairs == 0 or pairs % states:
            raise InputError(f"transition must have shape (S·A, S), one row per state-action pair, not {shape}.")
        self._freeze(states, pairs // states)
        transition.sum_duplicates()
        _check_rows(transition)
        transition.eliminate_zeros()
        lengths = np.diff(transition.indptr)
        transition.data /= np.repeat(transition.sum(axis=1), lengths)
        for array in (transition.data, transition.indices, transition.indptr):
            array.setflags(write=False)
        object.__setattr__(self, "transition", transition)

    def expected_next(self, values: Float[np.ndarray, " S"]) -> Float[np.ndarray, "S A"]:
        """Expected value of the next state, Σ_s' p(s'|s,a) values(s')."""
        return (self.transition @ values).reshape(self.reward.shape)

    def state_chain(self, policy: ArrayLike) -> csr_array:
        """The chain of states under a policy, P_π(s,s') = Σ_a π(a|s) p(s'|s,a), sparse."""
        states, actions = self.reward.shape
        pairs = states * actions
        choice = csr_array(
            (self._policy(policy).ravel(), np.arange(pairs), np.arange(0, pairs + 1, actions)), shape=(states, pairs)
        )
        chain = csr_array(choice @ self.transition)
        chain.eliminate_zeros()
        return chain

    def _next_draws(self) -> RowDraws:
        return RowDraws.sparse(self.transition)


def _check_rows(transition: csr_array) -> None:
    """Raise unless the stored entries of each row are probabilities that sum to 1."""
    require_finite("transition", transition.data)
    if (transition.data < 0).any():
        entry = int(np.argmax(transition.data < 0))
        row = int(np.searchsorted(transition.indptr, entry, side="right")) - 1
        raise InputError(f"transition has a negative probability, first in row {row}: {transition.data[entry]!r}.")
    totals = transition.sum(axis=1)
    off = np.abs(totals - 1) > 1e-6
    if off.any():
        row = int(np.argmax(off))
        raise InputError(
            f"transition must sum to 1 in each row; row {row} sums to {totals[row]:.9g}. Normalise it. Rows are "
            "state-action pairs, state-major: row = state · A + action."
        )
