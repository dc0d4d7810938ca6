"""Which column is which: the names that a log has, guessed from the field's habits unless they are given."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradientdice.base.errors import InputError
from gradientdice.log.fields import ARRAYS, REQUIRED, STEPS
from gradientdice.log.files.reading import nearest

KNOWN = (*ARRAYS, STEPS)
# The first name that is there is taken. Names are compared in lower case.
HABITS = {
    "states": ("states", "state", "observations", "observation", "obs", "observation.state", "s"),
    "actions": ("actions", "action", "act", "acts", "a"),
    "rewards": ("rewards", "reward", "rew", "rews", "r"),
    "next_states": (
        "next_states", "next_state", "next_observations", "next_observation", "next_obs", "new_obs", "obs_next",
        "observations_next", "observation_next", "states_next", "state_next", "obs2", "next_s", "s_next", "s'",
    ),
    "initial_states": ("initial_states", "initial_observations", "initial_obs"),
    "terminated": (
        "terminated", "terminateds", "terminals", "terminal", "terminations", "termination", "is_terminal",
        "dones", "done", "is_done",
    ),
    "truncated": (
        "truncated", "truncateds", "truncations", "truncation", "is_truncated", "timeouts", "timeout", "time_limit",
    ),
    "episodes": (
        "episodes", "episode", "episode_id", "episode_ids", "episode_index", "eps_id", "ep_id", "trajectory_id",
        "trajectory", "traj_id",
    ),
    "weights": ("weights", "sample_weights", "sample_weight"),
    "behavior_log_probs": (
        "behavior_log_probs", "behavior_log_prob", "behaviour_log_probs", "behaviour_log_prob", "action_log_probs",
        "action_log_prob", "action_logp", "log_probs", "log_prob", "logprobs", "logprob", "logp",
        "infos/action_log_probs",
    ),
    STEPS: (
        "steps", "step", "step_id", "timestep", "time_step", "t", "frame_index", "datetime", "timestamp", "date",
        "time",
    ),
}  # fmt: skip
NUMBER = re.compile(r"_[0-9]+$")
# In many logs these are true at every end, by a time limit too.
AMBIGUOUS = ("dones", "done", "is_done")


@dataclass(frozen=True)
class Naming:
    """The column of each field.

    Attributes:
        names: field -> column, or several of them that are joined to a vector.
        guessed: the fields whose column has another name, which nobody gave.
        named_order: whether the user named the column that orders the rows.
    """

    names: dict[str, str | tuple[str, ...]]
    guessed: tuple[str, ...]
    named_order: bool = False

    @property
    def done(self) -> bool:
        """Whether ends are told by a column that may also be true at time limits."""
        return "terminated" in self.guessed and str(self.names["terminated"]).lower() in AMBIGUOUS

    @property
    def notes(self) -> list[str]:
        """What was guessed, in a phrase."""
        if not self.guessed:
            return []
        pairs = ", ".join(f"{field} = {self.names[field]}" for field in self.guessed)
        return [f"columns were recognised by their names: {pairs}"]


def resolve(place: object, present: Sequence[str], columns: Any) -> Naming:
    """Finds each field's column; an error if one that was given is not there, or a log cannot do without one.

    Args:
        place: where they are, for messages.
        present: the names of all columns.
        columns: field -> name, several names, or None for a field that the log has not; None if nothing was given.
    """
    given, left_out = checked(columns)
    for chosen in given.values():
        for name in (chosen,) if isinstance(chosen, str) else chosen:
            if not _has(name, present):
                raise InputError(f"{place} has no column {name!r}; {nearest(name, present)}.")
    taken = {name for chosen in given.values() for name in ((chosen,) if isinstance(chosen, str) else chosen)}
    names, guessed = dict(given), []
    for field in KNOWN:
        if field in given or field in left_out:
            continue
        found = next((name for habit in HABITS[field] for name in _spelled(habit, present) if name not in taken), None)
        if found is not None:
            names[field] = found
            taken.add(found)
            if found != field:
                guessed.append(field)
    for field in REQUIRED:
        if field not in names and field != "next_states":
            own = next((name for habit in HABITS[field] for name in _spelled(habit, present)), None)
            if own is not None:
                raise InputError(
                    f"columns gives {own!r} to another field, and {place} has no other column for {field}."
                )
            raise InputError(
                f"{place} lacks the field {field!r}; {nearest(field, present)}. If it has another name there, say so: "
                f"columns={{{field!r}: '…'}}."
            )
    return Naming(names, tuple(field for field in guessed if field != STEPS), STEPS in given)


def checked(columns: Any) -> tuple[dict[str, str | tuple[str, ...]], set[str]]:
    """The columns that a user named, several names as a tuple, and the fields that the log was said not to have."""
    if columns is None:
        return {}, set()
    wrong = InputError(f"columns must be a dictionary of field -> name in the log, not {columns!r:.60}.")
    if not isinstance(columns, Mapping):
        raise wrong
    plain: dict[str, str | tuple[str, ...]] = {}
    left_out = {field for field, name in columns.items() if name is None and isinstance(field, str)}
    for field, name in columns.items():
        if field in left_out:
            continue
        several = isinstance(name, (list, tuple)) and len(name) > 0 and all(isinstance(part, str) for part in name)
        if not isinstance(field, str) or not (isinstance(name, str) or several):
            raise wrong
        plain[field] = name if isinstance(name, str) else tuple(name)
    needed = [field for field in REQUIRED if field in left_out and field != "next_states"]
    if needed:
        raise InputError(f"columns says that the log has no {needed[0]}, without which there is no answer.")
    taken = [name for chosen in plain.values() for name in ((chosen,) if isinstance(chosen, str) else chosen)]
    twice = [name for name in taken if taken.count(name) > 1]
    if twice:
        raise InputError(f"columns names {twice[0]!r} twice: each column is one field, or one part of one.")
    unknown = sorted((set(plain) | left_out) - set(KNOWN))
    if unknown:
        raise InputError(f"columns names {unknown[0]!r}, which is no field of a log; the fields are {list(ARRAYS)}.")
    return plain, left_out


def _has(name: str, present: Sequence[str]) -> bool:
    return name in present or any(_stem(column) == name for column in present if column != name)


def _spelled(habit: str, present: Sequence[str]) -> list[str]:
    """The columns of this name in any case; that of a vector in numbered columns without its numbers."""
    return [name for name in dict.fromkeys(_stem(column) for column in present) if name.lower() == habit] + [
        name for name in present if name.lower() == habit
    ]


def _stem(column: str) -> str:
    return NUMBER.sub("", column)
