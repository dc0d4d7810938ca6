"""Logs on disk for tests of scanned logs, cut into files and row groups at any place."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import gradientdice as gd
from gradientdice.log.fields import ARRAYS

STATES, ACTIONS = 6, 2


def small_table(seed: int = 0, episodes: int = 40, noise: float = 0.0) -> tuple[gd.Transitions, gd.TabularPolicy]:
    """Episodes over six states, some of which end and some of which a time limit cuts, with whole or noisy rewards."""
    rng = np.random.default_rng(seed)
    mdp = gd.mdp.TabularMDP(
        rng.dirichlet(np.full(STATES, 0.5), size=(STATES, ACTIONS)),
        rng.integers(0, 3, size=(STATES, ACTIONS)).astype(float),
        rng.dirichlet(np.ones(STATES)),
    )
    data = mdp.rollout(np.full((STATES, ACTIONS), 1 / ACTIONS), episodes, 12, rng)
    ended = (data.states == 0) & (rng.random(len(data)) < 0.3)
    # What follows an end in this episode is not part of it.
    after = np.zeros(len(data), dtype=bool)
    for episode in np.unique(known_episodes(data)):
        rows = np.flatnonzero(data.episodes == episode)
        after[rows] = np.cumsum(ended[rows]) - ended[rows] > 0
    keep = ~after
    rewards = (data.rewards + noise * rng.normal(size=len(data)))[keep]
    parts = (data.states[keep], data.actions[keep], rewards, data.next_states[keep])
    log = gd.Transitions(*parts, terminated=ended[keep], episodes=known_episodes(data)[keep])
    return log, gd.TabularPolicy(rng.dirichlet(np.ones(ACTIONS), size=STATES))


def known_episodes(data: gd.Transitions) -> np.ndarray:
    assert data.episodes is not None
    return data.episodes


def features() -> gd.LinearFeatures:
    return gd.LinearFeatures(
        lambda states, actions: np.column_stack([np.cos(states), np.sin(states), actions, actions * states])
    )


def as_function(policy: gd.TabularPolicy) -> gd.DiscretePolicy:
    return gd.DiscretePolicy(lambda states: policy.probabilities[states], policy.num_actions)


def with_fields(data: gd.Transitions, **changed) -> gd.Transitions:
    own = {field.name: getattr(data, field.name) for field in fields(gd.Transitions)}
    return gd.Transitions(**{**own, **changed})


def as_table(data: gd.Transitions) -> pa.Table:
    columns = {name: getattr(data, name) for name in ARRAYS if getattr(data, name) is not None}
    starts = columns.pop("initial_states", None)
    table = pa.table({name: list(array) if array.ndim > 1 else array for name, array in columns.items()})
    if starts is not None:
        n = len(data)
        offsets = (np.arange(n + 1) * len(starts) + n - 1) // n
        table = table.append_column("initial_states", pa.LargeListArray.from_arrays(offsets, pa.array(starts)))
    return table


def written(folder: Path, data: gd.Transitions, cuts: Sequence[int] = (), group: int = 1 << 20) -> Path:
    """The log in a folder of files, cut before these rows, with row groups of so many rows."""
    folder.mkdir(parents=True, exist_ok=True)
    table = as_table(data)
    bounds = [0, *sorted(set(cuts)), len(data)]
    for number, (start, stop) in enumerate(zip(bounds[:-1], bounds[1:], strict=True)):
        if stop > start:
            pq.write_table(table.slice(start, stop - start), folder / f"{number:03}.parquet", row_group_size=group)
    return folder


def same_answer(first: gd.Estimate, second: gd.Estimate, rtol: float = 1e-12) -> None:
    """The two agree in value and interval."""
    assert first.interval is not None and second.interval is not None
    scale = max(1.0, abs(first.value))
    np.testing.assert_allclose(first.value, second.value, rtol=0, atol=rtol * scale)
    np.testing.assert_allclose(first.interval, second.interval, rtol=0, atol=rtol * scale)
    assert (first.num_rows, first.num_clusters) == (second.num_rows, second.num_clusters)


def same(first: gd.Estimate, second: gd.Estimate, rtol: float = 1e-12) -> None:
    """The two agree in value, interval and evidence."""
    same_answer(first, second, rtol)
    assert first.verdict is second.verdict
    found, expected = ({check.name: check.value for check in each.checks} for each in (first, second))
    assert found.keys() == expected.keys()
    np.testing.assert_allclose(list(found.values()), list(expected.values()), rtol=1e-6, atol=1e-9)
    # Where episodes are cut, a log in memory is continued by its process; what both have seen is the same.
    one, other = first.behavior_seen, second.behavior_seen
    if one is None or other is None:
        assert one is other
    else:
        np.testing.assert_allclose(one.value, other.value, rtol=1e-12)
        np.testing.assert_allclose(one.interval, other.interval, rtol=1e-11)  # pyright: ignore
    for estimate in (first, second):
        if estimate.improvement is not None:
            assert estimate.behavior is not None and estimate.behavior.value == estimate.improvement.baseline


def large_table(rows: int, seed: int = 0) -> tuple[gd.Transitions, gd.TabularPolicy]:
    """Episodes of 50 steps over a hundred states, with noisy rewards."""
    rng, states = np.random.default_rng(seed), 100
    mdp = gd.mdp.TabularMDP(
        rng.dirichlet(np.full(states, 0.1), size=(states, ACTIONS)),
        rng.normal(size=(states, ACTIONS)),
        rng.dirichlet(np.ones(states)),
    )
    data = mdp.rollout(np.full((states, ACTIONS), 1 / ACTIONS), rows // 50, 50, rng)
    noisy = with_fields(data, rewards=data.rewards + rng.normal(size=len(data)), behavior_log_probs=None)
    return noisy, gd.TabularPolicy(rng.dirichlet(np.ones(ACTIONS), size=states))


def three_ways(rows: int, folder: Path, client: Any) -> dict[str, gd.Estimate]:
    """The same answer from a log of so many rows: in memory, by a scan, and by a scan on the workers of a cluster.

    Args:
        rows: how many.
        folder: where the log is written.
        client: of a Dask cluster on this machine.
    """
    data, policy = large_table(rows)
    place = written(folder, data, cuts=range(rows // 8 + 7, rows, rows // 8), group=rows // 20)
    logs = {"memory": data, "scan": gd.scan(place), "cluster": gd.scan(place, client=client)}
    return {name: gd.evaluate(log, policy, discount=0.9) for name, log in logs.items()}


def agree(answers: dict[str, gd.Estimate]) -> None:
    """Those of `three_ways` do: to 1e-12 of the value, and to the last bit by scan and on a cluster."""
    memory, scan, cluster = (answers[name] for name in ("memory", "scan", "cluster"))
    # What is assumed about a large log is tested on a sample of it.
    same_answer(scan, memory)
    assert (scan.value, scan.interval) == (cluster.value, cluster.interval)
