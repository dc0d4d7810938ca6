"""Rows without a known next state are dropped: did an outcome go with them?

Dropping the last row of an episode that was cut does no harm: other rows show what its state and action pay. Where the
outcome of an episode stands in its last row alone, as a discharge or a sale does, it is lost. Two figures tell these
apart, and both must be large: what dropped rows paid beyond what their states and actions pay in the rows that are
kept, and how far the reward jumps from the rows before to the dropped one, beside how it changes elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from gradientdice.base.errors import InputError
from gradientdice.log.fields import as_field

# So many dropped rows with the largest deviations are left out: one outlier is chance.
OUTLIERS = 2
# Fewer values than these show no difference.
FEWEST = 5
# Rows that the regression of continuous states is fitted to.
MOST_FITTED = 20_000


@dataclass(frozen=True)
class Dropped:
    """Rows that were dropped since nothing is known of what followed them.

    Attributes:
        count: how many.
        mean: of their rewards.
        kept_mean: of the rewards of the rows that are kept.
        surprise: by how many standard deviations of chance the two differ, given states and actions.
    """

    count: int
    mean: float
    kept_mean: float
    surprise: float

    def written(self) -> list[str]:
        """Texts that `read` makes the same of, as files keep them."""
        return [repr(self.count), repr(self.mean), repr(self.kept_mean), repr(self.surprise)]

    @classmethod
    def read(cls, words: list[str] | tuple[str, ...]) -> Dropped:
        """The record that `written` wrote; `InputError` if these are other words."""
        try:
            count, mean, kept_mean, surprise = words
            return cls(int(count), float(mean), float(kept_mean), float(surprise))
        except (TypeError, ValueError) as error:
            raise InputError(f"dropped_rows is what gradientdice.load writes there, not {words!r:.60}.") from error


def dropped_rows(columns: dict[str, np.ndarray], keep: Bool[np.ndarray, " n"]) -> Dropped:
    """Compare the rewards of dropped rows with those of kept ones.

    Args:
        columns: the log with all rows, those of an episode together and in time order.
        keep: which rows stay.
    """
    rewards = as_field("rewards", columns["rewards"])
    beyond = _beyond_pairs(columns, rewards, keep)
    jump = _jump(columns["episodes"], rewards, keep)
    figures = [figure for figure in (beyond, jump) if figure is not None]
    kept_mean = float(rewards[keep].mean()) if keep.any() else 0.0
    surprise = float(min(figures, default=0.0))
    return Dropped(int((~keep).sum()), float(rewards[~keep].mean()), kept_mean, surprise)


def _beyond_pairs(columns: dict[str, np.ndarray], rewards: Float[np.ndarray, " n"], keep: np.ndarray) -> float | None:
    """How far the dropped rewards are from what their states and actions pay in kept rows, in deviations of chance.

    None where most dropped rows have states that no kept row has: nothing says what they pay.
    """
    states, actions = (_plain(columns[name]) for name in ("states", "actions"))
    if states.ndim == 1 and actions.ndim == 1 and states.dtype.kind in "iu" and actions.dtype.kind in "iu":
        rest, spread = _pair_residuals(np.column_stack([states, actions]), rewards, keep)
    else:
        rest, spread = _regression_residuals(states, actions, rewards, keep)
    known = ~keep & np.isfinite(rest)
    if 2 * known.sum() < (~keep).sum():
        return None
    usual = rest[keep & np.isfinite(rest)]
    return _larger(_deviations(rest[known], spread[known], usual), _sizes(rest[known], usual))


def _jump(episodes: np.ndarray, rewards: Float[np.ndarray, " n"], keep: np.ndarray) -> float | None:
    """How far the reward changes at the dropped row, against its change before, in deviations of such changes."""
    same = episodes[1:] == episodes[:-1]
    change = np.append(0.0, np.diff(rewards))
    two = np.append(False, same)
    three = two & np.append(False, two[:-1])
    for inside, change_of in ((three, change - np.append(0.0, change[:-1])), (two, change)):
        dropped, usual = change_of[inside & ~keep], change_of[inside & keep]
        if len(dropped) >= FEWEST and len(usual) >= FEWEST:
            dropped, usual = dropped - usual.mean(), usual - usual.mean()
            return _larger(_deviations(dropped, np.zeros(len(dropped)), usual), _sizes(dropped, usual))
    return None


def _sizes(dropped: np.ndarray, usual: np.ndarray) -> float | None:
    """The same for how large the deviations are: wins and losses may average to nothing."""
    if not len(usual):
        return None
    size = float(np.abs(usual).mean())
    return _deviations(np.abs(dropped) - size, np.zeros(len(dropped)), np.abs(usual) - size)


def _larger(first: float | None, second: float | None) -> float | None:
    found = [figure for figure in (first, second) if figure is not None]
    return max(found) if found else None


def _deviations(dropped: np.ndarray, spread: np.ndarray, usual: np.ndarray) -> float | None:
    """A mean in standard deviations of what chance gives it, without its two largest parts."""
    if len(dropped) < FEWEST + OUTLIERS or not len(usual):
        return None
    order = np.argsort(np.abs(dropped))[: len(dropped) - OUTLIERS]
    dropped, spread = dropped[order], spread[order]
    # If dropped rows are like all others, all of them together show how much rewards vary.
    deviation = float(np.sqrt(np.mean(np.append(usual, dropped) ** 2)))
    if deviation == 0:
        return 0.0
    count = len(dropped)
    return abs(float(dropped.mean())) / (deviation * np.sqrt(1 / count + float(spread.mean()) / count))


def _pair_residuals(pairs: np.ndarray, rewards: np.ndarray, keep: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each reward less the mean of the kept rows of its pair (of the others, for a kept row), and how noisy that is."""
    _, pair = np.unique(pairs, axis=0, return_inverse=True)
    pair = pair.reshape(-1)
    count = np.bincount(pair, keep).astype(float)
    total = np.bincount(pair, np.where(keep, rewards, 0.0))
    others = count[pair] - keep
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = rewards - (total[pair] - np.where(keep, rewards, 0.0)) / others
        # The mean of a pair is shared by all its dropped rows.
        spread = np.bincount(pair, ~keep)[pair] / others
    rest[others == 0] = np.nan
    return rest, spread


def _regression_residuals(
    states: np.ndarray, actions: np.ndarray, rewards: np.ndarray, keep: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Each reward less a regression of kept rows on squares of the states, apart for each of a few actions."""
    features = _features(states, actions)
    fitted = np.flatnonzero(keep)
    fitted = fitted[np.linspace(0, len(fitted) - 1, min(MOST_FITTED, len(fitted))).astype(np.int64)]
    params = np.linalg.lstsq(features[fitted], rewards[fitted], rcond=None)[0]
    gram = features[fitted].T @ features[fitted]
    total = features[~keep].sum(axis=0)
    # The noise of the regression is shared by all dropped rows.
    shared = float(total @ np.linalg.pinv(gram) @ total) / max(1, int((~keep).sum()))
    return rewards - features @ params, np.full(len(rewards), shared)


def _features(states: np.ndarray, actions: np.ndarray) -> Float[np.ndarray, "n k"]:
    flat = states.reshape(len(states), -1).astype(np.float64)
    scale = flat.std(axis=0)
    flat = (flat - flat.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    codes = np.unique(actions, return_inverse=True)[1] if actions.ndim == 1 and actions.dtype.kind in "iu" else None
    if codes is not None and codes.max() < 10:
        taken = np.eye(codes.max() + 1)[codes.reshape(-1)]
        moved = (taken[:, :, None] * flat[:, None, :]).reshape(len(flat), -1)
        return np.column_stack([taken, moved, flat**2])
    doses = actions.reshape(len(actions), -1).astype(np.float64)
    return np.column_stack([np.ones(len(flat)), flat, flat**2, doses, doses**2])


def _plain(column: np.ndarray) -> np.ndarray:
    return np.ma.getdata(column)
