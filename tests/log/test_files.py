"""Logs in files: bit for bit, in folders, and refused by name."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import gradientdice as gd
from gradientdice.log.fields import ARRAYS
from problems import known, random_problem

GOOD = {"states": [0, 1, 2], "actions": [0, 1, 0], "rewards": [0.0, 1.0, 2.0], "next_states": [1, 2, 0]}


def rich_log():
    rng = np.random.default_rng(0)
    n = 50
    return gd.Transitions(
        states=rng.normal(size=(n, 3)).astype(np.float32),
        actions=rng.normal(size=(n, 1)),
        rewards=rng.normal(size=n) * 1e-7,
        next_states=rng.normal(size=(n, 3)).astype(np.float32),
        initial_states=rng.normal(size=(7, 3)).astype(np.float32),
        terminated=rng.random(n) < 0.1,
        truncated=np.zeros(n, dtype=bool),
        episodes=np.arange(n) // 10,
        weights=rng.random(n),
        behavior_log_probs=rng.normal(size=n),
    )


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".csv"])
@pytest.mark.parametrize("kind", ["rich", "tabular", "bare"])
def test_files_come_back_bit_for_bit(tmp_path, suffix, kind):
    if kind == "rich":
        log = rich_log()
    elif kind == "tabular":
        mdp, _, data_dist = random_problem(0)
        log = mdp.sample(200, data_dist, np.random.default_rng(1))
    else:
        log = gd.Transitions(**GOOD)
    path = tmp_path / f"log{suffix}"
    log.save(path)
    again = gd.load(path)
    for name in ARRAYS:
        first, second = getattr(log, name), getattr(again, name)
        assert (first is None) == (second is None), name
        if first is not None:
            assert first.dtype == second.dtype, name
            np.testing.assert_array_equal(first, second, err_msg=name)
    assert list(tmp_path.iterdir()) == [path], "no temporary file is left"


@st.composite
def logs(draw: st.DrawFn) -> gd.Transitions:
    """Any log of up to six rows: whole or real states, in one or two dimensions, each optional column there or not."""
    rows, width = draw(st.integers(1, 6)), draw(st.sampled_from([(), (1,), (3,)]))
    numbers = st.floats(-1e6, 1e6, allow_subnormal=False)
    values = draw(st.sampled_from([(np.float64, numbers), (np.int64, st.integers(0, 10**6))]))

    def column(kind: Any, elements: st.SearchStrategy[Any], *shape: int) -> np.ndarray:
        return draw(arrays(kind, shape, elements=elements))

    def perhaps(kind: Any, elements: st.SearchStrategy[Any]) -> np.ndarray | None:
        return column(kind, elements, rows) if draw(st.booleans()) else None

    starts = column(*values, draw(st.integers(1, rows)), *width) if draw(st.booleans()) else None
    return gd.Transitions(
        states=column(*values, rows, *width),
        actions=column(np.int64, st.integers(0, 5), rows),
        rewards=column(np.float64, numbers, rows),
        next_states=column(*values, rows, *width),
        initial_states=starts,
        terminated=perhaps(np.bool_, st.booleans()),
        episodes=perhaps(np.int64, st.integers(-3, 3)),
        weights=perhaps(np.float64, st.floats(0.1, 10)),
        behavior_log_probs=perhaps(np.float64, st.floats(-20, 0)),
    )


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".csv"])
@given(log=logs())
def test_any_log_comes_back(tmp_path_factory, suffix, log):
    path = tmp_path_factory.mktemp("logs") / f"log{suffix}"
    log.save(path)
    again = gd.load(path)
    for name in ARRAYS:
        first, second = getattr(log, name), getattr(again, name)
        np.testing.assert_array_equal(first, second, err_msg=name)
        assert getattr(first, "dtype", None) == getattr(second, "dtype", None), name


def test_more_initial_states_than_rows(tmp_path):
    log = gd.Transitions(**GOOD, initial_states=np.arange(10))
    for suffix in (".npz", ".parquet"):
        log.save(tmp_path / f"log{suffix}")
        np.testing.assert_array_equal(gd.load(tmp_path / f"log{suffix}").initial_states, np.arange(10))
    with pytest.raises(gd.InputError, match="Save as .npz or .parquet"):
        log.save(tmp_path / "log.csv")
    assert not (tmp_path / "log.csv").exists()


def test_a_folder_of_parquet_files_is_one_log(tmp_path):
    mdp, _, data_dist = random_problem(0)
    logs = [mdp.sample(30, data_dist, np.random.default_rng(seed)) for seed in (0, 1)]
    (tmp_path / "logs").mkdir()
    for number, log in enumerate(logs):
        log.save(tmp_path / "logs" / f"{number}.parquet")
    whole = gd.load(tmp_path / "logs")
    np.testing.assert_array_equal(whole.rewards, np.concatenate([log.rewards for log in logs]))
    assert len(known(whole.initial_states)) == 60


def test_bad_files_are_refused(tmp_path):
    with pytest.raises(gd.InputError, match="There is no file"):
        gd.load(tmp_path / "nothing.npz")
    (tmp_path / "empty.csv").touch()
    with pytest.raises(gd.InputError, match="is empty"):
        gd.load(tmp_path / "empty.csv")
    (tmp_path / "log.txt").write_text("hello")
    with pytest.raises(gd.InputError, match="not '.txt'"):
        gd.load(tmp_path / "log.txt")
    for suffix in (".npz", ".parquet"):
        (tmp_path / f"broken{suffix}").write_bytes(b"not what it says")
        with pytest.raises(gd.InputError, match="not a readable"):
            gd.load(tmp_path / f"broken{suffix}")
    (tmp_path / "short.csv").write_text("states,actions,rewards\n1,2,3\n")
    with pytest.raises(gd.InputError, match="lacks the field 'next_states'"):
        gd.load(tmp_path / "short.csv")
    np.savez(tmp_path / "pickle.npz", **{**GOOD, "states": np.array([{}] * 3, dtype=object)})
    with pytest.raises(gd.InputError, match="Python objects, which are never read"):
        gd.load(tmp_path / "pickle.npz")
    with pytest.raises(gd.InputError, match="saved as"):
        gd.Transitions(**GOOD).save(tmp_path / "log.pkl")


def test_renamed_initial_columns_may_be_shorter(tmp_path):
    (tmp_path / "log.csv").write_text("states,actions,rewards,next_states,start\n0,0,1,0,0\n0,0,2,0,\n")
    assert known(gd.load(tmp_path / "log.csv", columns={"initial_states": "start"}).initial_states).tolist() == [0]
