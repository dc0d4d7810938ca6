"""What a ranking costs: ten policies against one on a control task, and a hundred on a table of 10⁵ rows.

Run it alone on the machine: `python benchmarks/ranking.py [--table] [--control]`.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import gradientdice as gd

STATES, ACTIONS, EPISODES, STEPS, POLICIES = 50, 4, 2_000, 50, 100


def table(seed: int = 0) -> tuple[gd.Transitions, dict[str, gd.TabularPolicy]]:
    """10⁵ rows of a random MDP, logged by uniform choices, and a hundred policies."""
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.full(STATES, 0.1), size=(STATES, ACTIONS))
    mdp = gd.mdp.TabularMDP(transition, rng.normal(size=(STATES, ACTIONS)), np.full(STATES, 1 / STATES))
    data = mdp.rollout(np.full((STATES, ACTIONS), 1 / ACTIONS), EPISODES, STEPS, rng, noise=0.5)
    chosen = {f"policy {k}": gd.TabularPolicy(rng.dirichlet(np.ones(ACTIONS), size=STATES)) for k in range(POLICIES)}
    return data, chosen


def seconds(work) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def rank_table() -> None:
    data, policies = table()
    one = seconds(lambda: gd.evaluate(data, policies["policy 0"], discount=0.95))
    all_of_them = seconds(lambda: gd.rank(data, policies, discount=0.95, progress=False).table)
    print(f"a hundred policies, table of 10⁵ rows          {all_of_them:8.1f} s, {all_of_them / one:.0f} times one")


def rank_control(name: str) -> None:
    from gradientdice_studies.ranking.cases import CASES

    case = CASES[name]()
    data, target = case.log(0), case.candidates["target"]
    # Compiled programs are kept by the process; those of a ranking are others, since it simulates less.
    gd.evaluate(data, target, discount=case.discount)
    gd.rank(data, dict(list(case.candidates.items())[:2]), discount=case.discount, progress=False)
    one = seconds(lambda: gd.evaluate(data, target, discount=case.discount))
    ten = seconds(lambda: gd.rank(data, case.candidates, discount=case.discount, progress=False).table)
    print(f"ten policies, 10⁴ rows of {name:21s}{ten:8.1f} s, {ten / one:.2f} times one ({one:.1f} s)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true", help="only the table")
    parser.add_argument("--control", action="store_true", help="only the control tasks")
    options = parser.parse_args()
    if options.table or not options.control:
        rank_table()
    if options.control or not options.table:
        for name in ("cart-pole", "pendulum"):
            rank_control(name)


if __name__ == "__main__":
    main()
