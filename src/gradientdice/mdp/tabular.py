"""A finite Markov decision process with its exact occupancy, ratio, value and Q: the oracle of every test."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from gradientdice.data.transitions import Transitions
from gradientdice.errors import InputError, require_count, require_distributions, require_finite, require_number
from gradientdice.mdp.stationary import stationary_distribution


@dataclass(frozen=True, eq=False)
class TabularMDP:
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

    def __post_init__(self) -> None:
        transition, reward, initial = (
            np.array(x, dtype=np.float64) for x in (self.transition, self.reward, self.initial)
        )
        if transition.ndim != 3 or transition.shape[0] != transition.shape[2]:
            raise InputError(f"transition must have shape (S, A, S), not {transition.shape}.")
        states, actions, _ = transition.shape
        if reward.shape != (states, actions):
            raise InputError(f"reward must have shape {(states, actions)} to match transition, not {reward.shape}.")
        if initial.shape != (states,):
            raise InputError(f"initial must have shape {(states,)} to match transition, not {initial.shape}.")
        require_finite("reward", reward)
        for name, array in (("transition", transition), ("initial", initial[None])):
            require_distributions(name, array)
            array /= array.sum(axis=-1, keepdims=True)
        for name, array in (("transition", transition), ("reward", reward), ("initial", initial)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @property
    def num_states(self) -> int:
        """S."""
        return self.transition.shape[0]

    @property
    def num_actions(self) -> int:
        """A."""
        return self.transition.shape[1]

    def occupancy(self, policy: ArrayLike, discount: float) -> Float[np.ndarray, "S A"]:
        """d_γ(s,a) = (1−γ) Σ_t γᵗ Pr(s_t=s, a_t=a); at γ = 1 the stationary distribution."""
        discount = require_number("discount", discount, low=0, high=1)
        probabilities = self._policy(policy)
        chain = self._state_chain(probabilities)
        if discount == 1:
            states = stationary_distribution(chain)
        else:
            states = np.linalg.solve(np.eye(self.num_states) - discount * chain.T, (1 - discount) * self.initial)
        return states[:, None] * probabilities

    def ratio(self, policy: ArrayLike, discount: float, data_dist: ArrayLike) -> Float[np.ndarray, "S A"]:
        """τ*(s,a) = d_γ(s,a) / d_μ(s,a), the density ratio that the estimators estimate."""
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
        """ρ_γ: (1−γ) E[Σ_t γᵗ r_t] for γ < 1, the average reward at γ = 1."""
        return float(np.sum(self.occupancy(policy, discount) * self.reward))

    def q_values(self, policy: ArrayLike, discount: float) -> Float[np.ndarray, "S A"]:
        """Q(s,a) = E[Σ_t γᵗ r_t | s, a]; at γ = 1 the differential Q with mean 0 under the occupancy."""
        discount = require_number("discount", discount, low=0, high=1)
        probabilities = self._policy(policy)
        chain = self._state_chain(probabilities)
        state_reward = np.sum(probabilities * self.reward, axis=1)
        if discount < 1:
            values = np.linalg.solve(np.eye(self.num_states) - discount * chain, state_reward)
            return self.reward + discount * self.transition @ values
        stationary = stationary_distribution(chain)
        average = float(stationary @ state_reward)
        # The rank-one term picks, among all solutions of V = r − ρ + PV, the one with d·V = 0.
        system = np.eye(self.num_states) - chain + np.outer(np.ones(self.num_states), stationary)
        values = np.linalg.solve(system, state_reward - average)
        return self.reward - average + self.transition @ values

    def pair_chain(self, policy: ArrayLike) -> Float[np.ndarray, "SA SA"]:
        """P_π((s,a),(s',a')) = p(s'|s,a) π(a'|s'), state-major."""
        pairs = self.num_states * self.num_actions
        chain = self.transition[:, :, :, None] * self._policy(policy)[None, None]
        return chain.reshape(pairs, pairs)

    def sample(self, n: int, data_dist: ArrayLike, rng: np.random.Generator) -> Transitions:
        """Draws n independent transitions with (s, a) ~ data_dist, and n initial states from `initial`."""
        n = require_count("n", n)
        pairs = rng.choice(self.num_states * self.num_actions, size=n, p=self._data_dist(data_dist).ravel())
        return Transitions(
            states=pairs // self.num_actions,
            actions=pairs % self.num_actions,
            rewards=self.reward.ravel()[pairs],
            next_states=self._next_states(pairs, rng),
            initial_states=rng.choice(self.num_states, size=n, p=self.initial),
        )

    def rollout(self, policy: ArrayLike, episodes: int, horizon: int, rng: np.random.Generator) -> Transitions:
        """Runs a policy for some episodes of `horizon` steps each; the last step of each is truncated."""
        episodes, horizon = require_count("episodes", episodes), require_count("horizon", horizon)
        probabilities = self._policy(policy)
        shape = (episodes, horizon)
        states, actions, next_states = (np.empty(shape, dtype=np.int64) for _ in range(3))
        state = rng.choice(self.num_states, size=episodes, p=self.initial)
        for step in range(horizon):
            states[:, step] = state
            actions[:, step] = _draw(probabilities, state, rng)
            state = self._next_states(state * self.num_actions + actions[:, step], rng)
            next_states[:, step] = state
        truncated = np.zeros(shape, dtype=bool)
        truncated[:, -1] = True
        return Transitions(
            states=states.ravel(),
            actions=actions.ravel(),
            rewards=self.reward[states, actions].ravel(),
            next_states=next_states.ravel(),
            truncated=truncated.ravel(),
            episodes=np.repeat(np.arange(episodes), horizon),
            behavior_log_probs=np.log(probabilities[states, actions]).ravel(),
        )

    def _next_states(self, pairs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return _draw(self.transition.reshape(-1, self.num_states), pairs, rng)

    def _state_chain(self, probabilities: np.ndarray) -> np.ndarray:
        return np.einsum("sa,sat->st", probabilities, self.transition)

    def _policy(self, policy: ArrayLike) -> np.ndarray:
        probabilities = np.asarray(policy, dtype=np.float64)
        if probabilities.shape != self.reward.shape:
            raise InputError(
                f"policy must have shape {self.reward.shape} (states, actions), not {probabilities.shape}."
            )
        require_distributions("policy", probabilities)
        return probabilities / probabilities.sum(axis=1, keepdims=True)

    def _data_dist(self, data_dist: ArrayLike) -> np.ndarray:
        data = np.asarray(data_dist, dtype=np.float64)
        if data.shape != self.reward.shape:
            raise InputError(f"data_dist must have shape {self.reward.shape} (states, actions), not {data.shape}.")
        require_distributions("data_dist", data.reshape(1, -1))
        return data / data.sum()


def _draw(distributions: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One draw from distributions[row] for each given row, by inverting all their distribution functions at once."""
    cumulative = np.cumsum(distributions, axis=1)
    cumulative /= cumulative[:, -1:]
    stacked = (cumulative + np.arange(len(distributions))[:, None]).ravel()
    # Rounding can push row + u up to row + 1 when u is within an ulp of 1.
    position = np.minimum(rows + rng.random(len(rows)), np.nextafter(rows + 1.0, 0))
    return np.searchsorted(stacked, position, side="right") - rows * distributions.shape[1]
