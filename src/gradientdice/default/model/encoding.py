"""A log as standardised inputs and targets of a model of the dynamics.

Inputs are the state and the action, discrete actions as indicators. Targets are the change of the state, the reward
and, where the log has any, the end. All but the end are standardised by the log's own moments; what is constant keeps
its value, because its scale is 0.

What an end itself pays, a prize or a penalty, is one number, taken off the rewards of ended rows: the model then pays
it as often as its episodes end. A network that learned the prize as part of the reward pays it near the goal again and
again, to episodes that go on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Num

from gradientdice.default.model.training import Samples
from gradientdice.functions.kernel import as_inputs, input_scaling
from gradientdice.functions.tabular import require_discrete
from gradientdice.log.transitions import Transitions
from gradientdice.policies import Policy

# Simulated states and rewards may leave the log's range by this share of it before they are held back: a bound at the
# range itself would bias what lies there.
MARGIN = 0.05
# Changes that are smaller than this share of the state's own size are rounding.
ROUNDING = 1e-9
# States that are copies of each other are no reason for a large coefficient.
END_TOLERANCE = 1e-6
# How many times the mean square of other changes the median square of those at ends may be.
USUAL_CHANGE = 10.0
# States are given to the policy with so many decimals below their standard deviation.
DECIMALS = 5


@dataclass(frozen=True, eq=False)
class Encoding:
    """From states and actions to standardised numbers, and back.

    Attributes:
        state_shape: of one state in the log.
        state_type: what the log's states are, if they are floating-point numbers; else double precision.
        center: the inputs' means; for discrete actions those of the state alone.
        scale: their deviations, 1 where an input is constant.
        num_actions: how many discrete actions; None for continuous ones.
        change_center: the mean change of the standardised state.
        change_scale: its deviation; 0 where it is constant.
        reward_center: the mean reward.
        reward_scale: its deviation; 0 where it is constant.
        end_reward: what an end adds to the reward; 0 without ends. The other figures are of rewards without it.
        reward_range: the least and the most that a reward is taken to be.
        low: the lower end of the standardised states' range.
        high: the upper end.
        ends: whether any episode ended.
        last_states: whether the next states of ended rows are those in which the episode ended. Where they are, the
            dynamics are learned from them too; some logs have another state there, since nothing follows.
    """

    state_shape: tuple[int, ...]
    state_type: np.dtype[Any]
    center: Float[np.ndarray, " d"]
    scale: Float[np.ndarray, " d"]
    num_actions: int | None
    change_center: Float[np.ndarray, " s"]
    change_scale: Float[np.ndarray, " s"]
    reward_center: float
    reward_scale: float
    end_reward: float
    reward_range: tuple[float, float]
    low: Float[np.ndarray, " s"]
    high: Float[np.ndarray, " s"]
    ends: bool
    last_states: bool

    @classmethod
    def of(cls, data: Transitions, policy: Policy) -> Encoding:
        """The encoding of a log."""
        center, scale, num_actions = input_scaling(data, policy)
        if num_actions is not None:
            require_discrete(data.actions, num_actions)
        size = data.states[0].size
        counted, moved = data.row_weights > 0, ~data.ended & (data.row_weights > 0)
        before = (as_inputs(data.states, None) - center[:size]) / scale[:size]
        after = (as_inputs(data.next_states, None) - center[:size]) / scale[:size]
        change = (after - before)[moved] if moved.any() else np.zeros((1, size))
        known = [before[counted], after[moved]]
        if data.start_states is not None:
            known.append((as_inputs(data.start_states, None) - center[:size]) / scale[:size])
        low, high = (
            np.min([part.min(axis=0) for part in known if len(part)], axis=0),
            np.max([part.max(axis=0) for part in known if len(part)], axis=0),
        )
        ends = bool(data.ended[counted].any())
        end_reward = _end_reward(data, before) if ends else 0.0
        rewards = (data.rewards - end_reward * data.ended)[counted]
        largest, margin = float(np.abs(rewards).max()), MARGIN * float(np.ptp(rewards))
        kind = data.states.dtype
        return cls(
            data.states.shape[1:],
            kind if np.issubdtype(kind, np.floating) else np.dtype(np.float64),
            center,
            scale,
            num_actions,
            change.mean(axis=0),
            _spread(change, np.ones(size)),
            float(rewards.mean()),
            float(_spread(rewards[:, None], np.array([largest]))[0]),
            end_reward,
            (float(rewards.min() - margin), float(rewards.max() + margin)),
            low - MARGIN * (high - low),
            high + MARGIN * (high - low),
            ends,
            _has_last_states(data, before, after, counted),
        )

    @property
    def state_size(self) -> int:
        """Numbers in a state."""
        return len(self.low)

    def states(self, states: Num[np.ndarray, "n ..."]) -> Float[np.ndarray, "n s"]:
        """Standardised states."""
        size = self.state_size
        return ((as_inputs(states, None) - self.center[:size]) / self.scale[:size]).astype(np.float32)

    def raw_states(self, states: Float[np.ndarray, "n s"]) -> Float[np.ndarray, "n ..."]:
        """Standardised states as the log, and so the policy, has them."""
        size = self.state_size
        raw = states.astype(np.float64) * self.scale[:size] + self.center[:size]
        steps = self.steps_per_unit
        rounded = np.where(self.low == self.high, raw, np.rint(raw * steps) / steps)
        return rounded.astype(self.state_type).reshape(len(raw), *self.state_shape)

    @property
    def steps_per_unit(self) -> Float[np.ndarray, " s"]:
        """A power of ten for each number of a state: states are rounded to its reciprocal for the policy.

        A speed of 0 would come back from its standardised form as -1e-10, and a policy that pushes along the speed
        would set off to the other side.
        """
        return 10.0 ** np.floor(DECIMALS - np.log10(self.scale[: self.state_size]))

    def actions(self, actions: Num[np.ndarray, "n ..."]) -> Float[np.ndarray, "n k"]:
        """Actions as inputs."""
        if self.num_actions is not None:
            return np.eye(self.num_actions, dtype=np.float32)[actions]
        size = self.state_size
        return ((as_inputs(actions, None) - self.center[size:]) / self.scale[size:]).astype(np.float32)

    def inputs(self, data: Transitions) -> Float[np.ndarray, "n d"]:
        """The logged pairs as inputs."""
        return np.concatenate([self.states(data.states), self.actions(data.actions)], axis=1)

    def samples(self, data: Transitions) -> Samples:
        """The log to learn from; the state at an end is learned from only if the log has it."""
        before, after = self.states(data.states).astype(np.float64), self.states(data.next_states)
        change = (after - before - self.change_center) / np.where(self.change_scale > 0, self.change_scale, 1.0)
        change[:, self.change_scale == 0] = 0.0
        going_on = data.rewards - self.end_reward * data.ended
        reward = (going_on - self.reward_center) / (self.reward_scale or 1.0) * (self.reward_scale > 0)
        columns = [change, reward[:, None], *([data.ended[:, None]] if self.ends else [])]
        targets = np.concatenate(columns, axis=1)
        weights = np.ones(targets.shape, dtype=np.float32)
        if not self.last_states:
            weights[data.ended, : self.state_size] = 0.0
        return Samples(self.inputs(data), targets.astype(np.float32), weights)


def _end_reward(data: Transitions, states: Float[np.ndarray, "n s"]) -> float:
    """What an end adds: the end's coefficient in a least-squares fit beside the state and its squares.

    Rewards that vary smoothly up to the end, as the state does, leave it nothing.
    """
    x = np.column_stack([data.ended, states, states**2, np.ones(len(states))])
    if data.ended[data.row_weights > 0].all():
        return 0.0
    root = np.sqrt(data.row_weights / data.row_weights.sum())
    return float(np.linalg.lstsq(x * root[:, None], data.rewards * root, rcond=END_TOLERANCE)[0][0])


def _has_last_states(data: Transitions, before: np.ndarray, after: np.ndarray, counted: np.ndarray) -> bool:
    """Whether ended rows changed the state about as others did.

    A state that is not the episode's last one (zeros, the next episode's first) is a change of another size, which the
    median shows, against changes that are large in some rows only, as falls are.
    """
    ended = data.ended & counted
    others = ~data.ended & counted
    if not ended.any() or not others.any():
        return False
    change = after - before
    if change[others].any() and not np.median(change[ended].any(axis=1)):
        # A state that is not known is taken to be the one before.
        return False
    center, spread = change[others].mean(axis=0), change[others].std(axis=0)
    size = np.mean(((change - center) / np.where(spread > 0, spread, 1.0)) ** 2, axis=1)
    return bool(np.median(size[ended]) <= USUAL_CHANGE * np.mean(size[others]))


def _spread(values: Float[np.ndarray, "n k"], size: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
    spread = values.std(axis=0)
    return np.where(spread > ROUNDING * size, spread, 0.0)
