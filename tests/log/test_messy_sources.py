"""What a newcomer may hand to `load`: each is refused in a sentence that says what to do, soon."""

import os
import time

import gymnasium
import numpy as np
import pandas as pd
import pytest

import gradientdice as gd

HEADER = "states,actions,rewards,next_states\n"
GOOD = {"states": [0, 1], "actions": [0, 1], "rewards": [0.0, 1.0], "next_states": [1, 0]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER.replace(",", ";") + "0;1;1.5;1\n", r"separated by ';'. Say so: csv=gradientdice.CSV\(delimiter=';'\)"),
        (HEADER.replace(",", "\t") + "0\t1\t1.5\t1\n", r"separated by '\\t'"),
        (HEADER, "has no rows, only a header"),
        (HEADER + '"[0, 1]",1,1.0,"[1, 0]"\n', r"lists that were written as text, such as '\[0, 1\]'.*states_0"),
        (HEADER + '0,"(1.0, 2.0)",1.0,1\n', "actions holds lists that were written as text"),
    ],
)
def test_csv_files_of_other_programs(tmp_path, text, message):
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(gd.InputError, match=message):
        gd.load(tmp_path / "log.csv")


def test_another_delimiter_that_was_said(tmp_path):
    (tmp_path / "log.csv").write_text("made by a program\n" + HEADER.replace(",", ";") + "0;1;1.5;1\n")
    found = gd.load(tmp_path / "log.csv", csv=gd.CSV(delimiter=";", skip_rows=1))
    assert found.rewards.tolist() == [1.5]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (pd.DataFrame([[0, 0, 1, 1.0, 1]], columns=["states", *GOOD]), "DataFrame cannot be read as a log .*Duplicate"),
        (pd.DataFrame({**GOOD, "rewards": [1j, 2]}), "DataFrame cannot be read as a log .*rewards"),
        (pd.Series([0.0, 1.0]), "the Series is a single column: give the data frame that it belongs to"),
        ([{"obs": 0, "action": 0, "reward": 1.0}], "not list: make a data frame or Transitions of it"),
        (gymnasium.make("CartPole-v1"), "is an environment, not a log: gradientdice.Recorder records one"),
        ({**GOOD, "states": {0: 1}}, "parts of states must be arrays of one length"),
        ({**GOOD, "states": {"a": [1, 2], "b": [1]}}, "parts of states must be arrays of one length"),
        ("https://example.org/log.csv", "is an address, not a file"),
        ("s3://bucket/log.parquet", "is an address, not a file"),
    ],
)
def test_objects_and_addresses(source, message):
    with pytest.raises(gd.InputError, match=message):
        gd.load(source)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"rewards": None}, "columns says that the log has no rewards"),
        ({"states": "a", "next_states": "a"}, "columns names 'a' twice"),
        ({"states": ["a", "a"]}, "columns names 'a' twice"),
    ],
)
def test_columns_that_make_no_log(columns, message):
    with pytest.raises(gd.InputError, match=message):
        gd.load({**GOOD, "a": [0, 1]}, columns=columns)


@pytest.mark.parametrize("read", [gd.load, gd.scan])
def test_a_folder_of_other_files_is_refused_at_once(tmp_path, monkeypatch, read):
    """Whatever lies below it."""
    (tmp_path / "notes.txt").write_text("mine")
    looked, walk = [], os.walk

    def counting(folder):
        for found in walk(folder):
            looked.append(found[0])
            yield found

    for number in range(20):
        (tmp_path / f"{number}").mkdir()
    monkeypatch.setattr(os, "walk", counting)
    begun = time.monotonic()
    with pytest.raises(gd.InputError, match="notes.txt is not a readable Parquet file: take it out of the folder"):
        read(tmp_path)
    assert set(looked) == {str(tmp_path)} and time.monotonic() - begun < 5


def test_what_arrow_leaves_out_of_a_folder_is_in_nobodys_way(tmp_path):
    gd.Transitions(**{name: np.array(values) for name, values in GOOD.items()}).save(tmp_path / "log.parquet")
    for name in ("_SUCCESS", ".log.parquet.crc"):
        (tmp_path / name).write_text("x")
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / "0.json").write_text("{}")
    assert len(gd.load(tmp_path)) == 2
