"""After a time limit the log shows the first state of the next episode."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from gradientdice.log.transitions import Transitions
from gradientdice.mdp import TabularMDP
from gradientdice.policies import TabularPolicy
from gradientdice_studies.traps.families.hidden import mass, rotation
from gradientdice_studies.traps.family import Case, Family, Half
from gradientdice_studies.traps.system import System

TRAP = "next states shifted after a time limit"


def families() -> list[Family]:
    """Tables, then continuous states; with the time limits flagged and without any flag."""
    return [
        _table("walk, reset by itself", "develop", 12, 300, 10, flagged=True),
        _table("walk, states[1:] and no flags", "develop", 9, 300, 8, flagged=False),
        _table("long walk, reset by itself", "report", 20, 400, 12, flagged=True),
        _table("long walk, states[1:] and no flags", "report", 15, 300, 10, flagged=False),
        _system("rotation, reset by itself", "develop", rotation(0.7, 0.2), 150, 12),
        _system("mass on a spring, reset by itself", "report", mass(0.1, 0.05), 200, 10),
    ]


def shifted(data: Transitions, *, flagged: bool = True) -> Transitions:
    """The log of an environment that resets by itself: the next state of each row is the next row's state."""
    following = np.concatenate([data.states[1:], data.next_states[-1:]])
    return replace(data, next_states=following, truncated=data.truncated if flagged else None)


def _table(name: str, half: Half, places: int, episodes: int, horizon: int, *, flagged: bool) -> Family:
    """A walk that starts near one end and pays more the further it comes."""
    transition, reward = np.zeros((places, 2, places)), np.tile(np.linspace(0, 1, places)[:, None], (1, 2))
    for place in range(places):
        for action, move in enumerate((-1, 1)):
            transition[place, action, min(max(place + move, 0), places - 1)] += 0.9
            transition[place, action, place] += 0.1
    starts = np.where(np.arange(places) < 3, 1 / 3, 0.0)
    mdp = TabularMDP(transition, reward, starts)
    target = np.tile([0.35, 0.65], (places, 1))

    def log(rng: np.random.Generator) -> Case:
        data = mdp.rollout(np.tile([0.4, 0.6], (places, 1)), episodes, horizon, rng, noise=0.2)
        return Case(shifted(replace(data, behavior_log_probs=None), flagged=flagged), TabularPolicy(target))

    return Family(name, TRAP, "table", half, 0.95, lambda: mdp.value(target, 0.95), log)


def _system(name: str, half: Half, system: System, episodes: int, horizon: int) -> Family:
    whole = system.shown_whole()

    def log(rng: np.random.Generator) -> Case:
        return Case(shifted(replace(whole.log(episodes, horizon, rng), behavior_log_probs=None)), whole.target)

    return Family(name, TRAP, "continuous", half, 0.95, cache(lambda: whole.value(0.95)), log)
