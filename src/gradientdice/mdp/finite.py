"""What a finite MDP can answer, whether its transitions are stored densely or sparsely."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from gradientdice.base.arrays import as_floats, require_memory, require_rng
from gradientdice.base.errors import InputError, require_count, require_distributions, require_finite, require_number
from gradientdice.log.transitions import Transitions
from gradientdice.mdp.draws import RowDraws
from gradientdice.mdp.stationary import differential_values, stationary_distribution
from gradientdice.mdp.systems import Chain, solve_chain


def require_mdp(mdp: object, kind: type[FiniteMDP] | None = None) -> None:
    """An error unless this is a finite MDP, and of this kind if one is asked for."""
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
        """S."""
        return self.reward.shape[0]

    @property
    def num_actions(self) -> int:
        """A."""
        return self.reward.shape[1]

    @abstractmethod
    def expected_next(self, values: Float[np.ndarray, " S"]) -> Float[np.ndarray, "S A"]:
        """Σ_s' p(s'|s,a) values(s')."""

    @abstractmethod
    def state_chain(self, policy: ArrayLike) -> Chain:
        """P_π(s,s') = Σ_a π(a|s) p(s'|s,a), stored as the transitions are."""

    @abstractmethod
    def _next_draws(self) -> RowDraws:
        """Draws of the next state, one row per pair."""

    def occupancy(self, policy: ArrayLike, discount: float) -> Float[np.ndarray, "S A"]:
        """d_γ(s,a) = (1−γ) Σ_t γᵗ Pr(s_t=s, a_t=a); at γ = 1 the stationary distribution."""
        discount = require_number("discount", discount, low=0, high=1)
        probabilities = self._policy(policy)
        chain = self.state_chain(probabilities)
        if discount == 1:
            states = stationary_distribution(chain)
        else:
            states = solve_chain(chain, discount, (1 - discount) * self.initial, transposed=True)
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
        chain = self.state_chain(probabilities)
        state_reward = np.sum(probabilities * self.reward, axis=1)
        if discount < 1:
            return self.reward + discount * self.expected_next(solve_chain(chain, discount, state_reward))
        stationary = stationary_distribution(chain)
        values = differential_values(chain, state_reward, stationary)
        return self.reward - float(stationary @ state_reward) + self.expected_next(values)

    def sample(self, n: int, data_dist: ArrayLike, rng: np.random.Generator) -> Transitions:
        """Draws n independent transitions with (s, a) ~ data_dist, and n initial states from `initial`."""
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
        """Runs a policy for some episodes of at most `horizon` steps each.

        Args:
            policy: (S, A) probabilities.
            episodes: how many episodes start.
            horizon: the number of steps after which an episode is cut: its last step is then truncated.
            rng: where the draws come from.
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
        """Checks what both kinds have besides the transitions, and stores copies that cannot be written."""
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
