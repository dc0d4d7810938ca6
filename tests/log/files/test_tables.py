"""Tables that look like a log and would be read wrongly: refused by column and row, or read rightly."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gradientdice as gd
from problems import known

COLUMNS = {"states": [0, 1, 2], "actions": [0, 1, 0], "rewards": [0.5, 1.0, 2.0], "next_states": [1, 2, 0]}


def write_csv(path, types=None, **changes):
    columns = {name: [str(value) for value in values] for name, values in {**COLUMNS, **changes}.items() if values}
    lines = [",".join(columns), *(",".join(row) for row in zip(*columns.values(), strict=True))]
    head = [] if types is None else ["#" + json.dumps(types)]
    path.write_text("\n".join([*head, *lines]) + "\n")
    return path


def write_parts(folder, *tables):
    folder.mkdir()
    for number, table in enumerate(tables):
        pq.write_table(pa.table(table), folder / f"{number}.parquet")
    return folder


class TestCsv:
    def test_a_gap_in_the_numbers_of_a_vector(self, tmp_path):
        path = write_csv(tmp_path / "log.csv", states=None, states_0=[1, 2, 3], states_2=[1, 2, 3])
        with pytest.raises(gd.InputError, match="but no states_1: number them from 0 without gaps"):
            gd.load(path)

    def test_numbers_from_1(self, tmp_path):
        path = write_csv(tmp_path / "log.csv", states=None, states_1=[1, 2, 3], states_2=[1, 2, 3])
        with pytest.raises(gd.InputError, match="but no states_0"):
            gd.load(path)

    def test_a_column_and_a_vector_of_one_name(self, tmp_path):
        with pytest.raises(gd.InputError, match="the columns states and states_0"):
            gd.load(write_csv(tmp_path / "log.csv", states_0=[7, 8, 9]))

    def test_two_columns_of_one_name(self, tmp_path):
        (tmp_path / "log.csv").write_text("states,actions,rewards,next_states,rewards\n0,0,1,0,9\n")
        with pytest.raises(gd.InputError, match="two columns named 'rewards'"):
            gd.load(tmp_path / "log.csv")

    def test_initial_states_are_not_joined_across_rows(self, tmp_path):
        vectors = {name: None for name in ("states", "next_states")} | {
            f"{name}_{k}": [1, 2, 3] for name in ("states", "next_states") for k in (0, 1)
        }
        path = write_csv(
            tmp_path / "log.csv", **vectors, initial_states_0=["5", "", "7"], initial_states_1=["6", "8", ""]
        )
        with pytest.raises(gd.InputError, match="row 1 has only some of the columns initial_states_0"):
            gd.load(path)
        path = write_csv(
            tmp_path / "log.csv", **vectors, initial_states_0=["5", "", "7"], initial_states_1=["6", "", "8"]
        )
        assert known(gd.load(path).initial_states).tolist() == [[5, 6], [7, 8]]

    @pytest.mark.parametrize(
        ("kind", "values"),
        [
            ("uint8", [0, 300, 1]),
            ("uint8", [0, -1, 1]),
            ("int64", [0, 1.7, 1]),
            ("bool", [0, 2, 1]),
            ("float16", [0, 1e9, 1]),
        ],
    )
    def test_the_line_of_types_never_changes_a_number(self, tmp_path, kind, values):
        path = write_csv(tmp_path / "log.csv", types={"states": kind}, states=values)
        with pytest.raises(gd.InputError, match="states is .* in row 1, which is no"):
            gd.load(path)

    @pytest.mark.parametrize(
        "line", ["#", "#[]", "#3", '#{"states": 3}', '#{"states": "object"}', '#{"states": "x"}', "#{"]
    )
    def test_odd_lines_of_types(self, tmp_path, line):
        path = write_csv(tmp_path / "log.csv")
        path.write_text(line + "\n" + path.read_text())
        with pytest.raises(gd.InputError, match="no line of types"):
            gd.load(path)

    def test_an_empty_line_of_types(self, tmp_path):
        path = write_csv(tmp_path / "log.csv", types={})
        assert gd.load(path).states.tolist() == [0, 1, 2]

    def test_what_follows_an_end_may_be_blank(self, tmp_path):
        changes = {"next_states": ["1", "", "0"], "terminated": ["no", "yes", "no"]}
        log = gd.load(write_csv(tmp_path / "log.csv", **changes))
        assert log.next_states.tolist() == [1, 1, 0] and known(log.terminated).tolist() == [False, True, False]
        with pytest.raises(gd.InputError, match="next_states has a masked value, first in row 1"):
            gd.load(write_csv(tmp_path / "log.csv", **{**changes, "terminated": None}))

    def test_names_of_episodes(self, tmp_path):
        log = gd.load(write_csv(tmp_path / "log.csv", episodes=["b7", "b7", "a1"]))
        assert known(log.episodes).tolist() == [0, 0, 1]

    def test_a_missing_column_of_a_wide_file_lists_the_nearest(self, tmp_path):
        wide = {f"x{number}": [1, 2, 3] for number in range(2000)}
        with pytest.raises(gd.InputError, match="of its 2,004 columns the nearest are .*'payment'") as caught:
            gd.load(write_csv(tmp_path / "log.csv", **wide, rewards=None, payment=[1, 2, 3]))
        assert len(str(caught.value)) < 600


class TestParquet:
    @pytest.mark.parametrize("order", [1, -1])
    @pytest.mark.parametrize("column", ["terminated", "episodes", "weights", "initial_states", "rewards"])
    def test_a_column_that_one_file_lacks_is_not_dropped(self, tmp_path, column, order):
        whole = {**COLUMNS, column: COLUMNS.get(column, [1, 0, 1])}
        without = {name: values for name, values in whole.items() if name != column}
        folder = write_parts(tmp_path / "logs", *[without, whole][::order])
        with pytest.raises(gd.InputError, match=f"lacks the column '{column}', which other files"):
            gd.load(folder)

    @pytest.mark.parametrize("order", [1, -1])
    def test_types_are_widened(self, tmp_path, order):
        short = {
            **COLUMNS,
            "rewards": pa.array([0.1, 0.2, 0.3], pa.float32()),
            "states": pa.array([0, 1, 2], pa.int8()),
        }
        tables = [short, {**COLUMNS, "rewards": [0.1, 0.2, 0.3], "states": [0, 1, 300]}][::order]
        log = gd.load(write_parts(tmp_path / "logs", *tables))
        long = slice(3, 6) if order == 1 else slice(0, 3)
        assert log.rewards[long].tolist() == [0.1, 0.2, 0.3] and log.states[long].tolist() == [0, 1, 300]

    def test_vectors_are_widened(self, tmp_path):
        def table(kind):
            vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.1] * 6, kind), 2)
            return {**COLUMNS, "states": vectors, "next_states": vectors}

        log = gd.load(write_parts(tmp_path / "logs", table(pa.float32()), table(pa.float64())))
        assert log.states.dtype == np.float64 and (log.states[3:] == 0.1).all()

    def test_numbers_in_one_file_and_lists_in_another(self, tmp_path):
        lists = {**COLUMNS, "states": [[0], [1], [2]], "next_states": [[1], [2], [0]]}
        with pytest.raises(gd.InputError, match="differ in length|not a readable Parquet file"):
            gd.load(write_parts(tmp_path / "logs", COLUMNS, lists))

    def test_lists_of_other_lengths(self, tmp_path):
        table = {**COLUMNS, "states": [[0.0, 1.0], [1.0], [2.0, 3.0]], "next_states": [[0.0, 1.0]] * 3}
        with pytest.raises(gd.InputError, match="the lists in column states differ in length"):
            gd.load(write_parts(tmp_path / "logs", table))

    def test_gaps(self, tmp_path):
        table = {**COLUMNS, "rewards": [0.0, None, 1.0]}
        with pytest.raises(gd.InputError, match="the column rewards has no value in row 1"):
            gd.load(write_parts(tmp_path / "first", table))
        table = {**COLUMNS, "states": [[0.0], [None], [1.0]], "next_states": [[0.0]] * 3}
        with pytest.raises(gd.InputError, match="the column states has no value in row 1"):
            gd.load(write_parts(tmp_path / "second", table))
        table = {**COLUMNS, "states": [[0.0], [4.0], [1.0]], "next_states": [[0.0], None, [0.0]]}
        log = gd.load(write_parts(tmp_path / "third", {**table, "terminated": [False, True, False]}))
        assert log.next_states.tolist() == [[0.0], [4.0], [0.0]]

    def test_names_and_decimals(self, tmp_path):
        names = pa.array(["b", "b", "a"]).dictionary_encode()
        money = pa.array([1, 2, 3], pa.decimal128(10, 2))
        log = gd.load(write_parts(tmp_path / "logs", {**COLUMNS, "episodes": names, "rewards": money}))
        assert known(log.episodes).tolist() == [0, 0, 1] and log.rewards.tolist() == [1, 2, 3]

    def test_a_folder_without_files(self, tmp_path):
        with pytest.raises(gd.InputError, match="a folder without Parquet files"):
            gd.load(tmp_path)

    def test_a_file_that_another_tool_changed(self, tmp_path):
        path = tmp_path / "log.parquet"
        gd.Transitions(**COLUMNS).save(path)
        table = pq.read_table(path)
        pq.write_table(table.slice(1), path)
        assert gd.load(path).rewards.tolist() == [1.0, 2.0]
        changed = table.set_column(2, "rewards", pa.array([7.0, 8.0, 9.0]))
        pq.write_table(changed, path)
        with pytest.raises(gd.InputError, match="drop the metadata 'gradientdice'"):
            gd.load(path)
        pq.write_table(changed.replace_schema_metadata(None), path)
        assert gd.load(path).rewards.tolist() == [7.0, 8.0, 9.0]
