"""The user's own names of columns are kept with the log, in its files and in what is said about it."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gradientdice as gd
from gradientdice.report.page import render

ROWS = 240
COLUMNS = {"states": ["speed", "angle"], "actions": ["force"], "next_states": ["next_speed", "next_angle"]}


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    speed, angle, force = rng.normal(size=(3, ROWS))
    columns = {"speed": speed, "angle": angle, "force": force, "next_speed": 0.5 * speed + force, "next_angle": angle}
    return pd.DataFrame({**columns, "reward": speed, "episode": np.repeat(np.arange(ROWS // 8), 8)})


@pytest.fixture(scope="module")
def data() -> gd.Transitions:
    return gd.load(frame(), columns=COLUMNS)


class TestNames:
    def test_those_of_columns_that_were_joined(self, data):
        assert data.state_columns == ("speed", "angle") and data.action_columns == ("force",)

    def test_vectors_among_them_are_numbered(self):
        rows = {
            "pose": np.zeros((2, 3)),
            "speed": [1.0, 2.0],
            "action": [0, 1],
            "reward": [0.0, 1.0],
            "done": [True, True],
        }
        found = gd.load(rows, columns={"states": ["pose", "speed"]})
        assert found.state_columns == ("pose_0", "pose_1", "pose_2", "speed")
        assert found.states.shape == (2, 4)

    @pytest.mark.parametrize("name", ["obs", "observations", "State", "states"])
    def test_usual_names_say_nothing_more_than_the_field(self, name):
        found = gd.load({name: np.zeros((2, 2)), "action": [0, 1], "reward": [0.0, 1.0], "done": [True, True]})
        assert found.state_columns is None and found.action_columns is None

    def test_those_of_dictionaries(self, tmp_path):
        parts = {"wheel": np.zeros((4, 2)), "battery": np.ones(4)}
        expected = ("battery", "wheel_0", "wheel_1")
        mapping = {"obs": parts, "action": [0, 1, 0, 1], "reward": [0.0] * 4, "done": [False, True] * 2}
        assert gd.load(mapping).state_columns == expected
        rows = [{"battery": 1.0, "wheel": [0.0, 0.0]}] * 4
        kind = pa.struct([("wheel", pa.list_(pa.float64(), 2)), ("battery", pa.float64())])
        table = pa.table({**mapping, "obs": pa.array(rows, kind)})
        assert gd.load(table).state_columns == expected
        pq.write_table(table, tmp_path / "log.parquet")
        found = gd.load(tmp_path / "log.parquet")
        assert found.state_columns == expected and found.states[0].tolist() == [1.0, 0.0, 0.0]

    def test_those_of_episodes_of_dictionaries(self):
        steps = {"reward": [[0.0, 1.0]], "action": [[0, 1]], "done": [[False, True]]}
        table = pa.table({"obs": [[{"y": 1.0, "x": 2.0}] * 2], **steps})
        found = gd.load(table)
        assert found.state_columns == ("x", "y") and found.states[0].tolist() == [2.0, 1.0]

    def test_one_hot_columns_are_words_for_codes(self):
        rows = {"x": [0.0, 1.0], "left": [1, 0], "right": [0, 1], "reward": [0.0, 1.0], "done": [1, 1]}
        found = gd.load(rows, columns={"states": ["x"], "actions": ["left", "right"]})
        assert found.actions.tolist() == [0, 1] and found.action_names == ("left", "right")
        assert found.action_columns is None and any("0 = left, 1 = right" in note for note in found.notes)

    def test_a_column_of_codes_gives_its_name_to_them(self):
        rng = np.random.default_rng(0)
        log = {"ward": rng.integers(3, size=300), "dose": rng.integers(2, size=300), "reward": np.ones(300)}
        following = {"next_state": rng.integers(3, size=300)}
        found = gd.load({**log, **following}, columns={"states": "ward", "actions": "dose"})
        estimate = gd.evaluate(found, gd.TabularPolicy(np.full((3, 2), 0.5)), discount=1.0)
        assert {move.where for move in estimate.movements} == {"ward 0", "ward 1", "ward 2"}
        assert estimate.footprint is not None
        assert [move.where for move in estimate.footprint.actions] == ["dose 0", "dose 1"]


class TestFiles:
    @pytest.mark.parametrize("suffix", [".npz", ".parquet", ".csv"])
    def test_they_are_saved_with_the_log(self, data, tmp_path, suffix):
        path = tmp_path / f"log{suffix}"
        data.save(path)
        again = gd.load(path)
        assert (again.state_columns, again.action_columns) == (data.state_columns, data.action_columns)
        np.testing.assert_array_equal(again.states, data.states)

    def test_they_stay_in_parts_of_the_log(self, data):
        assert [part.state_columns for part in data.split(0.5)] == [("speed", "angle")] * 2

    def test_what_is_saved_of_one_column_is_not_said_of_another(self, data, tmp_path):
        path = tmp_path / "log.parquet"
        data.save(path)
        table = pq.read_table(path)
        heights = {name: pa.array(np.zeros(ROWS)) for name in ("height", "height_after")}
        for name, column in heights.items():
            table = table.append_column(name, column)
        pq.write_table(table, path)
        own = {"states": "height", "next_states": "height_after"}
        found = gd.load(path, columns=own)
        assert found.state_columns == ("height",) and found.action_columns == ("force",)
        with pytest.raises(gd.InputError, match="no column"):
            gd.load(path, columns={"states": "width"})
        scanned = gd.scan(path, columns=own)
        assert "state_columns" not in scanned.books and "action_columns" in scanned.books


class TestAnswers:
    def test_movements_and_pictures_use_them(self, data):
        policy = gd.SamplingPolicy(lambda states, rng: 0.3 + rng.normal(size=(len(states), 1)))
        estimate = gd.evaluate(data, policy, discount=1.0, effort="quick")
        assert [move.where for move in estimate.movements] == ["speed, mean", "angle, mean"]
        assert estimate.footprint is not None and estimate.footprint.states is not None
        assert set(estimate.footprint.states.names) == {"speed", "angle"}
        assert [move.where for move in estimate.footprint.actions] == ["force, mean"]
        page = render(estimate)
        assert "speed and angle" in page or "angle and speed" in page
        assert "state[" not in page and "states_0" not in page

    def test_so_do_answers_from_scanned_logs(self, data, tmp_path):
        data.save(tmp_path / "log.parquet")
        log = gd.scan(tmp_path / "log.parquet")
        assert log.sample.state_columns == ("speed", "angle")
        policy = gd.DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), 2)
        codes = gd.load({"s": data.states, "a": np.arange(ROWS) % 2, "r": data.rewards, "next_s": data.next_states})
        named = gd.Transitions(codes.states, codes.actions, codes.rewards, codes.next_states, state_columns=("u", "v"))
        named.save(tmp_path / "named.parquet")
        functions = gd.LinearFeatures(lambda states, actions: np.column_stack([np.ones(len(states)), states, actions]))
        found = gd.evaluate(gd.scan(tmp_path / "named.parquet"), policy, discount=1.0, functions=functions)
        assert [move.where for move in found.movements] == ["u, mean", "v, mean"]


def test_there_must_be_one_name_per_number():
    rows = {"actions": [0, 1], "rewards": [0.0, 1.0]}
    with pytest.raises(gd.InputError, match="state_columns has 1 names, and a row has 2 numbers"):
        gd.Transitions(np.zeros((2, 2)), **rows, next_states=np.zeros((2, 2)), state_columns=("a",))
    with pytest.raises(gd.InputError, match="different words, one per column"):
        gd.Transitions(np.zeros((2, 2)), **rows, next_states=np.zeros((2, 2)), state_columns=("a", "a"))
