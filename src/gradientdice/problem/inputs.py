"""The log as standardised inputs of a network: current, following and initial, with termination made explicit.

As in `design`, a terminated transition leads to an absorbing state: here the input that is zero but for an indicator of
its own, the last, whose self-loop is one row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from gradientdice.base.arrays import require_memory
from gradientdice.base.errors import InputError
from gradientdice.functions.kernel import as_inputs, input_scaling
from gradientdice.log.transitions import Transitions
from gradientdice.policies import LoggedPolicy, Policy, SamplingPolicy, StatePolicy
from gradientdice.problem.absorbing import loop_weight
from gradientdice.problem.folds import counted_starts


@dataclass(frozen=True, eq=False)
class NetworkInputs:
    """A log for networks, in single precision.

    Attributes:
        current: (n, d).
        following: (n, m, d), one for each action or draw.
        following_weights: (n, m) the actions' probabilities, or 1/m each.
        initial: (n0, m, d); None if the log has no initial states.
        initial_weights: (n0, m).
        start_shares: (n0,) how much of all starts each initial state is; they sum to 1.
        rewards: (n,).
        weights: (n,), which sum to 1.
        ended: (n,) where the episode terminated.
        absorbing: whether the last row is the absorbing state's own.
        sampled: whether the actions are draws, any one of which may be used.
        restarts: whether ended episodes restart, as at discount 1.
    """

    current: Float[np.ndarray, "n d"]
    following: Float[np.ndarray, "n m d"]
    following_weights: Float[np.ndarray, "n m"]
    initial: Float[np.ndarray, "n0 m d"] | None
    initial_weights: Float[np.ndarray, "n0 m"] | None
    start_shares: Float[np.ndarray, " n0"] | None
    rewards: Float[np.ndarray, " n"]
    weights: Float[np.ndarray, " n"]
    ended: Bool[np.ndarray, " n"]
    absorbing: bool
    sampled: bool
    restarts: bool = False

    def only(self, rows: np.ndarray, initial: np.ndarray) -> NetworkInputs:
        """With no weight on rows and initial states that are not marked; where no marked one counts, all starts stay.

        The shapes stay, so that one compiled program serves all folds.
        """
        kept = np.append(rows, True) if self.absorbing else rows
        weights = np.where(kept, self.weights, 0.0)
        shares = self.start_shares
        if shares is not None:
            shares = np.where(counted_starts(initial, shares), shares, 0.0)
            shares = shares / shares.sum()
        return replace(self, weights=(weights / weights.sum()).astype(np.float32), start_shares=shares)

    def without_absorbing(self) -> NetworkInputs:
        """For discount 1, at which ended episodes restart: the absorbing state's row left out."""
        if not self.absorbing:
            return self
        keep = slice(0, len(self.rewards) - 1)
        return replace(
            self,
            current=self.current[keep],
            following=self.following[keep],
            following_weights=self.following_weights[keep],
            rewards=self.rewards[keep],
            weights=self.weights[keep] / self.weights[keep].sum(),
            ended=self.ended[keep],
            absorbing=False,
            restarts=True,
        )


def network_inputs(
    data: Transitions,
    policy: Policy,
    draws: int,
    rng: np.random.Generator,
    encoder: Encoder | None = None,
    absorbing: bool | None = None,
) -> NetworkInputs:
    """Standardises a log and lays the policy's actions out at its next and initial states.

    Args:
        data: the log, or some rows of it.
        policy: the policy.
        draws: actions drawn in each state from a policy that can only be sampled.
        rng: for those.
        encoder: scaled to the whole log, if these are some rows of it; None scales to the data.
        absorbing: whether there is an absorbing state; None is where a row of the data ended.
    """
    encoder = Encoder.create(data, policy, draws) if encoder is None else encoder
    if encoder.num_actions is not None:
        size = len(data), encoder.num_actions, len(encoder.center) + encoder.num_actions
        require_memory(
            "The networks' inputs", *size, remedy="Give a SamplingPolicy over vectors of the actions' features."
        )
    ended = np.array(data.ended)
    next_states = np.array(data.next_states)
    next_states[ended] = data.states[ended]
    everything = slice(0, len(data))
    at_next = policy.at_next(everything, len(data)) if isinstance(policy, LoggedPolicy) else policy
    current = encoder.at(data.states, data.actions)
    following, following_weights = encoder.expected(next_states, at_next, rng)
    initial, initial_weights, shares = None, None, None
    starts = data.start_states
    if starts is not None and not (isinstance(policy, LoggedPolicy) and not policy.knows_initial):
        at_initial = policy.at_initial(len(starts)) if isinstance(policy, LoggedPolicy) else policy
        initial, initial_weights = encoder.expected(starts, at_initial, rng)
        assert data.start_weights is not None
        shares = data.start_weights / data.start_weights.sum()
    rewards = data.rewards
    weights = np.array(data.row_weights)
    absorbing = bool(ended.any()) if absorbing is None else absorbing
    if absorbing:
        rest = np.eye(1, current.shape[1] + 1, current.shape[1], dtype=np.float32)
        current = np.concatenate([_widen(current), rest])
        following = _widen(following)
        following[ended] = rest
        following = np.concatenate([following, np.broadcast_to(rest, (1, *following.shape[1:]))])
        following_weights = np.concatenate([following_weights, following_weights[:1]])
        initial = None if initial is None else _widen(initial)
        rewards, ended = np.append(rewards, 0.0), np.append(ended, False)
        weights = np.append(weights, loop_weight(float(weights.sum())))
    return NetworkInputs(
        current,
        following,
        following_weights.astype(np.float32),
        initial,
        None if initial_weights is None else initial_weights.astype(np.float32),
        shares,
        rewards.astype(np.float32),
        (weights / weights.sum()).astype(np.float32),
        ended,
        absorbing,
        encoder.num_actions is None,
    )


def _widen(inputs: np.ndarray) -> np.ndarray:
    return np.concatenate([inputs, np.zeros((*inputs.shape[:-1], 1), dtype=inputs.dtype)], axis=-1)


@dataclass(frozen=True, eq=False)
class Encoder:
    """How states and actions become inputs.

    Attributes:
        center: the inputs' means.
        scale: their standard deviations.
        num_actions: how many discrete actions, or None for continuous ones.
        draws: actions drawn in each state from a policy that can only be sampled.
    """

    center: Float[np.ndarray, " d"]
    scale: Float[np.ndarray, " d"]
    num_actions: int | None
    draws: int

    @classmethod
    def create(cls, data: Transitions, policy: Policy, draws: int) -> Encoder:
        """Scaled to a log."""
        return cls(*input_scaling(data, policy), draws)

    def at(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """The inputs of pairs."""
        if self.num_actions is None:
            return ((as_inputs(states, actions) - self.center) / self.scale).astype(np.float32)
        if (
            actions.ndim != 1
            or actions.dtype.kind not in "iu"
            or actions.min() < 0
            or actions.max() >= self.num_actions
        ):
            raise InputError(
                f"The policy has discrete actions: actions must be whole numbers from 0 to {self.num_actions - 1}."
            )
        scaled = (as_inputs(states, None) - self.center) / self.scale
        return np.concatenate([scaled, np.eye(self.num_actions)[actions]], axis=1).astype(np.float32)

    def expected(
        self, states: np.ndarray, policy: StatePolicy, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """The inputs of each action, or of some draws, in each state, and their weights."""
        if isinstance(policy, SamplingPolicy):
            count = policy.draws or self.draws
            drawn = np.stack([self.at(states, policy.sample(states, rng)) for _ in range(count)], axis=1)
            return drawn, np.full((len(states), count), 1 / count)
        assert self.num_actions is not None
        actions = [self.at(states, np.full(len(states), action)) for action in range(self.num_actions)]
        return np.stack(actions, axis=1), policy.probabilities_at(states)
