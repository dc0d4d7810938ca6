"""Cost of what is asked of every log and policy at the door, as a share of an answer.

Run by `python benchmarks/door.py`, and by `make bench`. A log of 10⁶ rows of a table, and one of 10⁵ rows with four numbers per state, are answered once; of that time, the share
that goes into the questions that every answer asks: a policy asked twice, rules over codes, ends, dropped rows, and the
policy's own actions. Loading a frame of 10⁶ rows is timed apart, beside the same frame with its numbers as text.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd

import gradientdice as gd

DOOR = {
    "over_logged_actions": "rules over the log's actions",
    "require_function": "the policy asked twice",
    "unrecorded_ends_check": "ends that are not recorded",
    "dropped_rows_check": "rows that were dropped",
    "policy_actions": "what the policy does",
}


def table(rows: int) -> tuple[gd.Transitions, gd.TabularPolicy]:
    """Episodes of up to a hundred steps on 500 states."""
    rng = np.random.default_rng(0)
    transition = np.zeros((500, 4, 500))
    for state in range(500):
        for action in range(4):
            transition[state, action, rng.choice(500, 5, replace=False)] = rng.dirichlet(np.ones(5))
    mdp = gd.mdp.TabularMDP(transition, rng.normal(size=(500, 4)), rng.dirichlet(np.ones(500)))
    data = mdp.rollout(np.full((500, 4), 0.25), rows // 100, 100, rng)
    return data, gd.TabularPolicy(rng.dirichlet(np.ones(4), size=500))


def vectors(rows: int) -> tuple[gd.Transitions, gd.DiscretePolicy]:
    """Episodes of fifty steps of a linear system with four coordinates."""
    rng = np.random.default_rng(1)
    states = [rng.normal(size=(rows // 50, 4))]
    actions = rng.integers(0, 2, (50, rows // 50))
    for taken in actions:
        states.append(0.9 * states[-1] + 0.2 * taken[:, None] + 0.1 * rng.normal(size=states[-1].shape))
    path = np.stack(states)
    flat = {"states": path[:-1], "next_states": path[1:]}
    columns = {name: array.transpose(1, 0, 2).reshape(rows, 4) for name, array in flat.items()}
    data = gd.Transitions(
        **columns,
        actions=actions.T.ravel(),
        rewards=columns["states"][:, 0],
        truncated=np.tile(np.arange(50) == 49, rows // 50),
        episodes=np.repeat(np.arange(rows // 50), 50),
    )
    return data, gd.DiscretePolicy(lambda at: np.tile([0.3, 0.7], (len(at), 1)), 2)


def shares(name: str, ask: Callable[[], object]) -> None:
    """Print the share of an answer's time that each question takes."""
    ask()  # imports, and what is compiled
    profile = cProfile.Profile()
    profile.runcall(ask)
    stats = pstats.Stats(profile)
    whole = stats.total_tt  # pyright: ignore[reportAttributeAccessIssue]
    spent = dict.fromkeys(DOOR, 0.0)
    for (_, _, function), (_, _, _, cumulative, _) in stats.stats.items():  # pyright: ignore[reportAttributeAccessIssue]
        if function in spent:
            spent[function] += cumulative
    print(f"{name}: {whole:.2f} s, of which the door {sum(spent.values()) / whole:.2%}")
    for function, seconds in spent.items():
        print(f"    {DOOR[function]:<32} {seconds:7.4f} s  {seconds / whole:.2%}")


def main() -> None:
    """Print the cost of the door."""
    data, policy = table(1_000_000)
    # A copy each time, so that nothing is known of the log.
    shares("table, 10⁶ rows", lambda: gd.evaluate(replace(data), policy, discount=0.95))
    states, push = vectors(100_000)
    shares(
        "vectors, 10⁵ rows, quick",
        lambda: gd.evaluate(replace(states), push, discount=0.9, effort="quick"),
    )
    names = {"states": "state", "actions": "action", "rewards": "reward", "next_states": "next_state"}
    frame = pd.DataFrame({column: getattr(data, field) for field, column in names.items()} | {"episode": data.episodes})
    for what, source in (("numbers", frame), ("numbers as text", frame.astype(str))):
        start = time.perf_counter()
        gd.load(source)
        print(f"gd.load of a frame of 10⁶ rows, {what}: {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
