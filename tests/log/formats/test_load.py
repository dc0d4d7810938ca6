"""One way in for every table: names by habit, next states by episode, ends told from time limits."""

import gzip
import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gradientdice as gd
from gradientdice.log.fields import ARRAYS
from problems import known, take


def log(episodes=20, steps=6, seed=0) -> dict[str, Any]:
    """Episodes of a drunken walk, by hand: the first half terminates, the rest is cut by a time limit."""
    rng = np.random.default_rng(seed)
    columns = {name: [] for name in ("obs", "action", "reward", "next_obs", "terminated", "truncated", "episode_id")}
    for episode in range(episodes):
        state = rng.normal(size=2)
        for step in range(steps):
            action = int(rng.integers(3))
            following = 0.9 * state + 0.1 * (action - 1) + 0.1 * rng.normal(size=2)
            last = step == steps - 1
            row = (state, action, float(state.sum()), following, last and episode % 2 == 0, last and episode % 2 == 1)
            for name, value in zip(columns, (*row, episode), strict=True):
                columns[name].append(value)
            state = following
    return {name: np.array(values) for name, values in columns.items()}


def by_hand(columns):
    return gd.Transitions(
        columns["obs"], columns["action"], columns["reward"], columns["next_obs"], terminated=columns["terminated"],
        truncated=columns["truncated"], episodes=columns["episode_id"],
    )  # fmt: skip


def assert_same(first, second, names=ARRAYS):
    for name in names:
        one, other = getattr(first, name), getattr(second, name)
        assert (one is None) == (other is None), name
        if one is not None:
            np.testing.assert_array_equal(one, other, err_msg=name)


def flat(columns):
    """One column of plain numbers each, as a CSV file has them."""
    table = {}
    for name, array in columns.items():
        parts = {name: array} if array.ndim == 1 else {f"{name}_{k}": array[:, k] for k in range(array.shape[1])}
        table |= parts
    return table


class TestSources:
    def test_a_mapping(self):
        columns = log()
        data = gd.load(columns)
        assert_same(data, by_hand(columns))
        assert "states = obs" in data.notes[0] and "next_states = next_obs" in data.notes[0]

    @pytest.mark.parametrize("shape", ["flat", "lists"])
    def test_frames(self, shape):
        columns = log()
        plain = flat(columns) if shape == "flat" else {name: list(array) for name, array in columns.items()}
        assert_same(gd.load(pd.DataFrame(plain)), by_hand(columns))
        assert_same(gd.load(pa.table(plain)), by_hand(columns))

    def test_anything_with_arrows_stream(self):
        class Frame:
            def __init__(self, table):
                self.table = table

            def __arrow_c_stream__(self, requested_schema=None):
                return self.table.__arrow_c_stream__(requested_schema)

        columns = log()
        assert_same(gd.load(Frame(pa.table(flat(columns)))), by_hand(columns))

    @pytest.mark.parametrize("suffix", ["csv", "csv.gz", "npz", "parquet", "jsonl", "jsonl.gz"])
    def test_files(self, tmp_path, suffix):
        columns, path = log(), tmp_path / f"log.{suffix}"
        frame = pd.DataFrame(flat(columns))
        if suffix.startswith("csv"):
            frame.to_csv(path, index=False)
        elif suffix == "npz":
            np.savez(path, allow_pickle=False, **columns)
        elif suffix == "parquet":
            frame.to_parquet(path)
        else:
            lines = [
                json.dumps({name: array[row].tolist() for name, array in columns.items()})
                for row in range(len(columns["reward"]))
            ]
            text = "\n".join(lines).encode()
            path.write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
        data = gd.load(path)
        np.testing.assert_allclose(data.states, columns["obs"], rtol=1e-15)
        assert_same(data, by_hand(columns), ("actions", "rewards", "terminated", "truncated", "episodes"))

    def test_parquet_in_partitions(self, tmp_path):
        columns = log(episodes=4)
        for episode in range(4):
            rows = columns["episode_id"] == episode
            folder = tmp_path / "logs" / f"episode_id={episode}"
            folder.mkdir(parents=True)
            part = {name: list(array[rows]) for name, array in columns.items() if name != "episode_id"}
            pq.write_table(pa.table(part), folder / "part.parquet")
        assert_same(gd.load(tmp_path / "logs"), by_hand(columns))

    def test_rows_that_are_episodes(self, tmp_path):
        columns = log(episodes=4)
        rows = [columns["episode_id"] == episode for episode in range(4)]
        # Decision Transformer's layout: as many observations as steps.
        table = pa.table(
            {
                "observations": [columns["obs"][own].tolist() for own in rows],
                "actions": [columns["action"][own].tolist() for own in rows],
                "rewards": [columns["reward"][own].tolist() for own in rows],
                "dones": [columns["terminated"][own].tolist() for own in rows],
            }
        )
        pq.write_table(table, tmp_path / "log.parquet")
        (tmp_path / "log.jsonl").write_text("\n".join(json.dumps(row) for row in table.to_pylist()))
        keep = ~columns["truncated"]
        for source in (table, tmp_path / "log.parquet", tmp_path / "log.jsonl"):
            data = gd.load(source)
            np.testing.assert_array_equal(data.states, columns["obs"][keep])
            going_on = ~known(data.terminated)
            np.testing.assert_array_equal(data.next_states[going_on], columns["next_obs"][keep][going_on])
            assert any("2 rows at time limits" in note for note in data.notes)

    def test_episodes_of_different_shapes(self):
        table = pa.table(
            {"obs": [[[1.0, 2.0]], [[1.0]]], "action": [[0], [0]], "reward": [[1.0], [1.0]], "done": [[True], [True]]}
        )
        with pytest.raises(
            gd.InputError, match=r"states of episode 1 have the shape \(1,\), those of the first \(2,\)"
        ):
            gd.load(table)

    def test_a_csv_file_with_other_habits(self, tmp_path):
        columns, path = log(), tmp_path / "log.csv"
        table = pd.DataFrame(flat(columns))
        text = table.to_csv(index=False, header=False, sep=";", quoting=1, quotechar="'")
        path.write_text("exported yesterday\n" + text)
        options = gd.CSV(delimiter=";", quote="'", skip_rows=1, names=list(table.columns))
        np.testing.assert_allclose(gd.load(path, csv=options).next_states, columns["next_obs"], rtol=1e-15)

    def test_quoted_words_with_commas(self, tmp_path):
        (tmp_path / "log.csv").write_text(
            'state,action,reward,done\n"a, first","go, ""now""",1,false\nb,stay,2,true\n"a, first",stay,0,true\n'
        )
        data = gd.load(tmp_path / "log.csv")
        assert data.state_names == ("a, first", "b") and data.action_names == ('go, "now"', "stay")
        assert data.next_states.tolist() == [1, 1, 0]

    def test_what_is_no_source(self):
        with pytest.raises(gd.InputError, match="takes a file, a data frame, a mapping"):
            gd.load([1, 2, 3])
        with pytest.raises(gd.InputError, match=r"csv= is for CSV files"):
            gd.load(log(), csv=gd.CSV())
        with pytest.raises(gd.InputError, match=r'episode_ends must be "terminated" or "truncated"'):
            gd.load(log(), episode_ends="done")


class TestNames:
    @pytest.mark.parametrize(
        "names",
        [
            ("observations", "actions", "rewards", "next_observations", "terminals", "timeouts", "episode"),
            ("Observation", "Action", "Reward", "Next_Observation", "terminated", "truncated", "traj_id"),
            ("state", "a", "r", "next_state", "is_terminal", "timeout", "eps_id"),
            ("obs", "actions", "rewards", "new_obs", "terminateds", "truncateds", "eps_id"),
        ],
    )
    def test_habits(self, names):
        columns = log()
        assert_same(gd.load(dict(zip(names, columns.values(), strict=True))), by_hand(columns))

    def test_columns_settle_it(self):
        columns = log()
        renamed = {**columns, "x": columns["obs"][:, 0], "y": columns["obs"][:, 1], "obs": columns["obs"] * 0}
        data = gd.load(renamed, columns={"states": ["x", "y"]})
        np.testing.assert_array_equal(data.states, columns["obs"])
        with pytest.raises(gd.InputError, match="has no column 'z'"):
            gd.load(renamed, columns={"states": ["x", "z"]})
        with pytest.raises(gd.InputError, match="'colour', which is no field"):
            gd.load(renamed, columns={"colour": "x"})

    def test_a_column_that_only_looks_like_a_field(self):
        columns = log()
        columns["timeout"] = columns.pop("truncated") * 30.0  # seconds, say
        with pytest.raises(gd.InputError, match="truncated must be true or false"):
            gd.load(columns)
        data = gd.load(columns, columns={"truncated": None})
        assert data.truncated is None

    def test_what_has_no_habitual_name_is_asked_for(self):
        with pytest.raises(gd.InputError, match="lacks the field 'rewards'.*columns={'rewards': '…'}"):
            gd.load({"obs": [1, 2], "action": [0, 1], "payment": [1.0, 2.0]})

    def test_the_librarys_own_names_are_read_as_they_stand(self, tmp_path):
        data = gd.Transitions([[1.0], [2.0]], [[0, 1], [1, 0]], [0.0, 1.0], [[2.0], [1.0]], terminated=[False, True])
        data.save(tmp_path / "log.parquet")
        again = gd.load(tmp_path / "log.parquet")
        assert_same(again, data)
        assert again.notes == () and again.actions.shape == (2, 2)


class TestEnds:
    def test_done_with_time_limits_marked(self):
        columns = log()
        both = {**columns, "done": columns["terminated"] | columns["truncated"], "timeout": columns["truncated"]}
        del both["terminated"], both["truncated"]
        data = gd.load(both)
        assert_same(data, by_hand(columns))

    def test_done_alone_is_a_termination_and_says_so(self):
        columns = log()
        columns["done"] = columns.pop("terminated") | columns.pop("truncated")
        data = gd.load(columns)
        np.testing.assert_array_equal(known(data.terminated), columns["done"])
        assert any("every end is taken for a termination" in note for note in data.notes)
        cut = gd.load(columns, columns={"truncated": "done"})
        np.testing.assert_array_equal(known(cut.truncated), columns["done"])

    @pytest.mark.parametrize("marked", ["episodes", "flags", "both"])
    def test_next_states_are_made_within_episodes(self, marked):
        columns = log()
        truth = by_hand(columns)
        del columns["next_obs"]
        if marked == "flags":
            del columns["episode_id"]
        if marked == "episodes":
            del columns["truncated"]
        data = gd.load(columns)
        keep = ~columns["truncated"] if "truncated" in columns else ~known(truth.truncated)
        going_on = ~known(data.terminated)
        np.testing.assert_array_equal(data.states, truth.states[keep])
        np.testing.assert_array_equal(data.next_states[going_on], truth.next_states[keep][going_on])
        np.testing.assert_array_equal(known(data.terminated), known(truth.terminated)[keep])
        # What is left of an episode that a time limit cut is still cut, one row earlier; of others nothing says why.
        expected = known(truth.truncated).sum() if "truncated" in columns else 0
        assert known(data.truncated).sum() == expected
        assert any("10 rows at time limits" in note for note in data.notes)
        np.testing.assert_array_equal(known(data.start_states), known(truth.start_states))

    def test_rows_out_of_order_are_sorted_by_step(self):
        columns = log()
        expected = gd.load({name: array for name, array in columns.items() if name != "next_obs"})
        columns["step"] = np.tile(np.arange(6), 20)
        order = np.random.default_rng(1).permutation(len(columns["reward"]))
        shuffled = {name: array[order] for name, array in columns.items() if name != "next_obs"}
        data = gd.load(shuffled)  # its episodes are in the order in which they first appear
        assert_same(take(data, np.argsort(known(data.episodes), kind="stable")), expected)
        assert any("sorted by episode and step" in note for note in data.notes)

    def test_rows_of_several_environments_in_turn(self):
        """One row of each episode after the other, as vectors of environments log them."""
        columns = log()
        expected = gd.load({name: array for name, array in columns.items() if name != "next_obs"})
        order = np.arange(120).reshape(20, 6).T.ravel()
        data = gd.load({name: array[order] for name, array in columns.items() if name != "next_obs"})
        assert_same(data, expected)

    def test_numbers_of_episodes_that_are_used_again(self):
        columns = {name: array for name, array in log().items() if name != "next_obs"}
        columns |= {"step": np.tile(np.arange(6), 20), "episode_id": columns["episode_id"] % 10}
        with pytest.raises(gd.InputError, match="episode 0 has step 0 twice"):
            gd.load(columns)

    def test_without_any_boundary_nothing_is_guessed(self):
        with pytest.raises(gd.InputError, match="neither episodes nor ends"):
            gd.load({"obs": [1.0, 2.0], "action": [0, 1], "reward": [0.0, 1.0]})

    def test_episodes_are_told_by_ends_only_if_rows_follow_each_other(self):
        columns = log()
        del columns["episode_id"]
        data = gd.load(columns)
        np.testing.assert_array_equal(known(data.episodes), np.repeat(np.arange(20), 6))
        order = np.random.default_rng(0).permutation(len(columns["reward"]))
        assert gd.load({name: array[order] for name, array in columns.items()}).episodes is None


class TestShapes:
    def test_dictionaries_are_joined_in_the_order_of_their_names(self):
        columns = log()
        expected = by_hand(columns)
        for name in ("obs", "next_obs"):
            array = columns.pop(name)
            columns[name] = {"b": array[:, 1:], "a": array[:, 0]}
        assert_same(gd.load(columns), expected)

    def test_dictionaries_in_json_lines_and_parquet(self, tmp_path):
        columns = log()
        lines = [
            {
                name: {"b": [array[row][1]], "a": array[row][0]} if array.ndim == 2 else array[row].item()
                for name, array in columns.items()
            }
            for row in range(len(columns["reward"]))
        ]
        (tmp_path / "log.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
        pq.write_table(pa.Table.from_pylist(lines), tmp_path / "log.parquet")
        for path in tmp_path.iterdir():
            np.testing.assert_allclose(gd.load(path).states, columns["obs"], rtol=1e-15)

    def test_images_are_refused_with_what_to_do(self):
        images = np.zeros((4, 8, 8, 3), dtype=np.uint8)
        with pytest.raises(gd.InputError, match=r"images of shape \(8, 8, 3\).*encoder"):
            gd.load({"obs": images, "next_obs": images, "action": [0] * 4, "reward": [0.0] * 4})

    def test_small_matrices_are_flattened(self):
        stacked = np.arange(24.0).reshape(4, 2, 3)
        data = gd.load({"obs": stacked, "next_obs": stacked, "action": [0] * 4, "reward": [0.0] * 4})
        np.testing.assert_array_equal(data.states, stacked.reshape(4, 6))

    def test_one_hot_actions_become_numbers(self):
        columns = log()
        hot = {**columns, "action": np.eye(3)[columns["action"]]}
        data = gd.load(hot)
        assert_same(data, by_hand(columns))
        assert any("one-hot actions" in note for note in data.notes)


class TestWords:
    def test_categories_become_codes_with_a_code_book(self, tmp_path):
        columns = log()
        words = np.array(["left", "stay", "right"])[columns["action"]]
        frame = pd.DataFrame({**flat(columns), "action": pd.Categorical(words)})
        data = gd.load(frame)
        assert data.action_names == ("left", "right", "stay")
        np.testing.assert_array_equal(np.array(data.action_names)[data.actions], words)
        assert any("0 = left, 1 = right, 2 = stay" in note for note in data.notes)
        for suffix in (".npz", ".parquet", ".csv"):
            data.save(tmp_path / f"log{suffix}")
            again = gd.load(tmp_path / f"log{suffix}")
            assert again.action_names == data.action_names
            np.testing.assert_array_equal(again.actions, data.actions)

    def test_numbers_that_arrive_as_text_are_numbers(self):
        words = [str(number) for number in (10, 2, 1, 10)]
        data = gd.load({"obs": [1.0] * 4, "next_obs": [1.0] * 4, "action": words, "reward": ["0", " .5", "+1", "-2e0"]})
        assert data.action_names is None and data.actions.tolist() == [10, 2, 1, 10]
        assert data.rewards.tolist() == [0.0, 0.5, 1.0, -2.0]

    @pytest.mark.parametrize("suffix", ["parquet", "csv"])
    def test_nothing_follows_an_end(self, tmp_path, suffix):
        frame = pd.DataFrame(
            {
                "state": ["a", "b", "a"],
                "action": ["x", "y", "x"],
                "reward": [1.0, 2.0, 3.0],
                "next_state": ["b", None, None],
                "done": [False, True, True],
            }
        )
        path = tmp_path / f"log.{suffix}"
        frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
        data = gd.load(path)
        assert data.state_names == ("a", "b") and data.states.tolist() == [0, 1, 0] and data.next_states[0] == 1
        frame.loc[1, "action"] = None
        frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
        with pytest.raises(gd.InputError, match="no value in row 1"):
            gd.load(path)

    def test_packed_columns_are_not_taken_for_words(self):
        packed = ["BCJNGGhAqAAAA" * 10] * 3
        with pytest.raises(gd.InputError, match="output_compress_columns"):
            gd.load({"obs": packed, "new_obs": packed, "action": [0, 1, 0], "reward": [0.0] * 3})

    def test_the_answer_uses_the_users_words(self):
        rng = np.random.default_rng(0)
        states, actions = rng.integers(2, size=400), rng.integers(2, size=400)
        words = {"state": np.array(["idle", "busy"])[states], "action": np.array(["wait", "work"])[actions]}
        following = np.array(["idle", "busy"])[rng.integers(2, size=400)]
        data = gd.load(pd.DataFrame({**words, "next_state": following, "reward": actions * 1.0}))
        assert (data.state_names, data.action_names) == (("busy", "idle"), ("wait", "work"))
        estimate = gd.evaluate(data, gd.TabularPolicy([[0.1, 0.9], [0.2, 0.8]]), discount=1.0)
        assert {move.where for move in estimate.movements} == {"busy", "idle"}
        assert any("actions were words: 0 = wait, 1 = work" in note for note in estimate.notes)
        assert math.isclose(estimate.value, 0.85, abs_tol=0.02)


def test_a_code_book_must_fit():
    good = {"states": [0, 1], "actions": [0, 1], "rewards": [0.0, 1.0], "next_states": [1, 0]}
    with pytest.raises(gd.InputError, match="has 1 words, and row 1 has the code 1"):
        gd.Transitions(**good, action_names=("a",))
    with pytest.raises(gd.InputError, match="different words"):
        gd.Transitions(**good, action_names=("a", "a"))
