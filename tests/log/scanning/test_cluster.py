"""Passes on a Dask cluster of real processes: the same bits as here, whichever workers are lost."""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.cli.main import main
from scans import agree, as_function, as_table, features, same, small_table, three_ways, written

distributed = pytest.importorskip("distributed")
pytestmark = [
    # Dask's own sockets and threads, which a worker that is killed leaves behind.
    pytest.mark.filterwarnings("ignore"),
]
DATA, TARGET = small_table(noise=1.0)


@pytest.fixture
def threads() -> Iterator:
    """A cluster in this process: what is sent to it is the same, and it starts at once."""
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        yield client


def test_a_ranking_has_the_same_bits_as_here_and_tasks_have_names(tmp_path, monkeypatch, threads):
    monkeypatch.setattr("gradientdice.log.scanning.opening.PART_ROWS", 1)
    folder = written(tmp_path / "log", DATA, group=90)
    keys, submit = [], threads.submit
    monkeypatch.setattr(
        threads, "submit", lambda *given, key, **more: keys.append(key) or submit(*given, key=key, **more)
    )
    policies = {"target": TARGET, "even": gd.TabularPolicy(np.full((6, 2), 0.5))}
    first, second = (
        gd.rank(gd.scan(folder, batch_rows=33, client=client), policies, 0.9) for client in (None, threads)
    )
    assert first.table.equals(second.table)
    # What Dask's dashboard shows: names of tasks without what tells one from another.
    names = {distributed.utils.key_split(key) for key in keys}
    assert names == {f"{work}-{kind}" for work in ("counts", "pairs", "scores") for kind in ("shared", "part", "merge")}
    assert len(set(keys)) == len(keys)


@pytest.fixture(scope="module")
def client() -> Iterator:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.slow
def test_the_same_bits_as_here(tmp_path, monkeypatch, client):
    monkeypatch.setattr("gradientdice.log.scanning.opening.PART_ROWS", 1)
    folder = written(tmp_path / "log", DATA, cuts=(100, 201), group=30)
    here, there = gd.scan(folder, batch_rows=13), gd.scan(folder, batch_rows=13, client=client)
    assert len(here.parts) > 8
    first, second = (gd.evaluate(log, TARGET, discount=0.9) for log in (here, there))
    assert (first.value, first.interval) == (second.value, second.interval)
    same(second, gd.evaluate(DATA, TARGET, discount=0.9))


@pytest.mark.slow
def test_features_and_checkpoints_from_another_number_of_workers(tmp_path, monkeypatch, client):
    monkeypatch.setattr("gradientdice.log.scanning.opening.PART_ROWS", 1)
    folder = written(tmp_path / "log", DATA, group=30)
    here, there = gd.scan(folder, batch_rows=13), gd.scan(folder, batch_rows=13, client=client)
    policy, functions = as_function(TARGET), features()
    expected = gd.evaluate(here, policy, discount=0.9, functions=functions)
    for log in (there, here, there):
        found = gd.evaluate(log, policy, discount=0.9, functions=functions, checkpoint=tmp_path / "checkpoint")
        assert (found.value, found.interval) == (expected.value, expected.interval)


@pytest.mark.slow
def test_a_dask_frame(client):
    frames = pytest.importorskip("dask.dataframe")
    frame = frames.from_pandas(as_table(DATA).to_pandas(), npartitions=5, sort=False)
    expected = gd.evaluate(DATA, TARGET, discount=0.9)
    same(gd.evaluate(gd.scan(frame, client=client), TARGET, discount=0.9), expected)
    same(gd.evaluate(gd.scan(frame), TARGET, discount=0.9), expected)


@pytest.mark.slow
def test_a_million_rows_by_scan_by_cluster_and_in_memory(tmp_path, client):
    agree(three_ways(1_000_000, tmp_path / "log", client))


@pytest.mark.slow
def test_the_command_line_takes_a_scheduler(tmp_path, monkeypatch, capsys, client):
    folder = written(tmp_path / "log", DATA, cuts=(100, 201))
    np.save(tmp_path / "target.npy", TARGET.probabilities)
    line = ["evaluate", folder, "--policy", tmp_path / "target.npy", "--discount", 0.9, "--json", "--scan"]
    monkeypatch.setattr("sys.argv", ["gradientdice", *map(str, line), "--scheduler", client.scheduler.address])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    assert json.loads(capsys.readouterr().out)["value"] == gd.evaluate(gd.scan(folder), TARGET, discount=0.9).value


@pytest.mark.slow
def test_rows_of_the_sample_are_left_out_on_workers_too(tmp_path, monkeypatch, client):
    monkeypatch.setattr("gradientdice.log.scanning.opening.PART_ROWS", 1)
    monkeypatch.setattr("gradientdice.log.scanning.log.SAMPLE_ROWS", 1000)
    rng = np.random.default_rng(0)
    paths = np.cumsum(0.3 * rng.normal(size=(400, 11, 1)), axis=1)
    states, following = paths[:, :-1].reshape(-1, 1), paths[:, 1:].reshape(-1, 1)
    data = gd.Transitions(states, rng.integers(0, 2, 4000), following[:, 0], following, episodes=np.arange(4000) // 10)
    folder = written(tmp_path / "log", data, group=300)
    policy = gd.DiscretePolicy(_even, 2)
    first, second = (
        gd.evaluate(gd.scan(folder, client=own), policy, discount=0.9, effort="quick") for own in (None, client)
    )
    assert (first.value, first.interval) == (second.value, second.interval)


@pytest.mark.slow
def test_episodes_in_no_order_are_refused_by_name(tmp_path, client):
    log = gd.Transitions(
        DATA.states, DATA.actions, DATA.rewards, DATA.next_states, episodes=np.arange(len(DATA))[::-1].copy()
    )
    with pytest.raises(gd.InputError, match="sort the log"):
        gd.evaluate(gd.scan(written(tmp_path, log), client=client), TARGET, discount=1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "ranked"), [(0, False), (1, False), (2, True)])
def test_workers_that_are_killed_change_nothing(tmp_path, monkeypatch, seed, ranked):
    """SIGKILL to a random worker again and again while passes run; the nanny starts another."""
    monkeypatch.setattr("gradientdice.log.scanning.opening.PART_ROWS", 1)
    folder = written(tmp_path / "log", DATA, group=12)
    policies = {"target": as_function(TARGET), "even": gd.DiscretePolicy(_even, 2)}

    def answers(client: Any) -> list:
        log, slow = gd.scan(folder, batch_rows=7, client=client), gd.LinearFeatures(_slow_features)
        if ranked:
            return gd.rank(log, policies, 0.9, baseline="even", functions=slow).table.to_dict("records")
        found = gd.evaluate(log, policies["target"], discount=0.9, functions=slow)
        return [found.value, found.interval]

    expected = answers(None)
    rng, stop, killed = np.random.default_rng(seed), threading.Event(), []
    with (
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):

        def kill() -> None:
            while not stop.wait(1.0) and len(killed) < 4:
                pids = list(client.run(os.getpid, on_error="ignore").values())
                if pids:
                    killed.append(int(rng.choice(pids)))
                    os.kill(killed[-1], signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        begin = time.monotonic()
        found = answers(client)
        stop.set()
        killer.join()
        assert time.monotonic() - begin < 300
    assert killed
    assert found == expected


def _even(states: np.ndarray) -> np.ndarray:
    return np.full((len(states), 2), 0.5)


def _slow_features(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    if threading.current_thread() is not threading.main_thread():
        time.sleep(0.02)  # on a worker, so that a pass takes long enough to be hit
    return np.column_stack([np.cos(states), np.sin(states), actions, actions * states])
