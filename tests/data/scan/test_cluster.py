"""Passes on a Dask cluster of real processes: the same bits as here, whichever workers are lost."""

import os
import signal
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

import gradientdice as gd
from scans import as_function, as_table, features, same, small_table, written

distributed = pytest.importorskip("distributed")
pytestmark = [
    # Dask's own sockets and threads, which a worker that is killed leaves behind.
    pytest.mark.filterwarnings("ignore"),
]
DATA, TARGET = small_table(noise=1.0)


@pytest.fixture(scope="module")
def client() -> Iterator:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_the_same_bits_as_here(tmp_path, monkeypatch, client):
    monkeypatch.setattr("gradientdice.data.scan.opening.PART_ROWS", 1)
    folder = written(tmp_path / "log", DATA, cuts=(100, 201), group=30)
    here, there = gd.scan(folder, batch_rows=13), gd.scan(folder, batch_rows=13, client=client)
    assert len(here.parts) > 8
    first, second = (gd.evaluate(log, TARGET, discount=0.9) for log in (here, there))
    assert (first.value, first.interval) == (second.value, second.interval)
    same(second, gd.evaluate(DATA, TARGET, discount=0.9))


@pytest.mark.slow
def test_features_and_checkpoints_from_another_number_of_workers(tmp_path, monkeypatch, client):
    monkeypatch.setattr("gradientdice.data.scan.opening.PART_ROWS", 1)
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
def test_episodes_in_no_order_are_refused_by_name(tmp_path, client):
    log = gd.Transitions(
        DATA.states, DATA.actions, DATA.rewards, DATA.next_states, episodes=np.arange(len(DATA))[::-1].copy()
    )
    with pytest.raises(gd.InputError, match="sort the log"):
        gd.evaluate(gd.scan(written(tmp_path, log), client=client), TARGET, discount=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_workers_that_are_killed_change_nothing(tmp_path, monkeypatch, seed):
    """SIGKILL to a random worker again and again while passes run; the nanny starts another."""
    monkeypatch.setattr("gradientdice.data.scan.opening.PART_ROWS", 1)
    folder = written(tmp_path / "log", DATA, group=12)
    slow = gd.LinearFeatures(_slow_features)
    policy = as_function(TARGET)
    expected = gd.evaluate(gd.scan(folder, batch_rows=7), policy, discount=0.9, functions=slow)
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
        found = gd.evaluate(gd.scan(folder, batch_rows=7, client=client), policy, discount=0.9, functions=slow)
        stop.set()
        killer.join()
        assert time.monotonic() - begin < 300
    assert killed
    assert (found.value, found.interval) == (expected.value, expected.interval)


def _slow_features(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    if threading.current_thread() is not threading.main_thread():
        time.sleep(0.02)  # on a worker, so that a pass takes long enough to be hit
    return np.column_stack([np.cos(states), np.sin(states), actions, actions * states])
