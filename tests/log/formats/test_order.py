"""A column of steps orders the rows of an episode, whatever it is called and however it is written, or is refused."""

import numpy as np
import pandas as pd
import pytest

import gradientdice as gd

LENGTHS = (4, 3, 5)


def known(array: np.ndarray | None) -> np.ndarray:
    assert array is not None
    return array


def frame() -> pd.DataFrame:
    """Three episodes in order; states say which row is which."""
    episode = np.repeat(np.arange(len(LENGTHS)), LENGTHS)
    step = np.concatenate([np.arange(length) for length in LENGTHS])
    rows = len(episode)
    return pd.DataFrame(
        {
            "obs": np.arange(rows),
            "action": np.arange(rows) % 2,
            "reward": np.arange(rows) / 7,
            "terminated": np.append(episode[1:] != episode[:-1], True),
            "episode": episode,
            "position": step,
        }
    )


DAYS = [f"2024-{2 + step // 2:02d}-{28 - 7 * (step % 2 == 0):02d}" for step in range(6)]
WRITTEN = {
    "whole numbers": lambda step: step,
    "numbers as text": lambda step: [str(9 + one) for one in step],  # by the alphabet 10 comes before 9
    "fractions": lambda step: step / 3,
    "dates as text": lambda step: [DAYS[one] for one in step],
    "datetimes": lambda step: pd.to_datetime([f"2024-01-31T23:00:{50 + one}" for one in step]),
    "datetimes with a zone": lambda step: pd.to_datetime([DAYS[one] for one in step]).tz_localize("Europe/Paris"),
    "text with a zone": lambda step: [f"{DAYS[one]}T10:00:00+02:00" for one in step],
    "nanoseconds": lambda step: [f"2024-01-01 10:00:00.00000000{one}" for one in step],
    "dates": lambda step: pd.to_datetime([DAYS[one] for one in step]).date,
}


def shuffled(table: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    return table.iloc[np.random.default_rng(seed).permutation(len(table))].reset_index(drop=True)


@pytest.mark.parametrize("kind", WRITTEN)
@pytest.mark.parametrize("way", ["frame", "csv", "parquet", "mapping"])
def test_rows_are_ordered_by_the_column_that_is_named(tmp_path, kind, way):
    table = frame()
    table["day"] = WRITTEN[kind](table.pop("position").to_numpy())
    expected = gd.load(table.drop(columns="day"))
    source = shuffled(table)
    if way == "csv":
        source.to_csv(tmp_path / "log.csv", index=False)
        source = tmp_path / "log.csv"
    elif way == "parquet":
        source.to_parquet(tmp_path / "log.parquet")
        source = tmp_path / "log.parquet"
    elif way == "mapping":
        source = {name: source[name].to_numpy() for name in source}
    data = gd.load(source, columns={"steps": "day"})
    order = np.argsort(known(data.episodes), kind="stable")
    np.testing.assert_array_equal(data.states[order], expected.states)
    going_on = ~known(expected.terminated)
    np.testing.assert_array_equal(data.next_states[order][going_on], expected.next_states[going_on])
    assert "rows were sorted by episode and day" in data.notes
    assert any("in the order of 'day'" in note for note in data.notes)


@pytest.mark.parametrize("name", ["date", "time", "timestamp", "datetime"])
def test_usual_names_are_found_and_said(name):
    table = frame()
    table[name] = WRITTEN["datetimes"](table.pop("position").to_numpy())
    data = gd.load(shuffled(table))
    assert f"rows were sorted by episode and {name}" in data.notes


def test_without_such_a_column_no_note_claims_an_order():
    data = gd.load(frame().drop(columns="position"))
    assert any(note.endswith("in the order of the file") for note in data.notes)
    assert not any("sorted" in note for note in data.notes)


def test_a_log_with_next_states_is_sorted_by_steps_that_are_named():
    table = frame()
    table["next_obs"] = table["obs"] + 1
    mixed = shuffled(table)
    assert gd.load(mixed, columns={"steps": None}).start_states is None
    data = gd.load(mixed, columns={"steps": "position"})
    assert sorted(known(data.start_states).tolist()) == [0, 4, 7]


WRONG = {
    "two zones": (["2024-01-01T10:00:00+01:00", "2024-01-02T10:00:00-05:00"], "two time zones.*row 1"),
    "a zone and none": (["2024-01-01T10:00:00Z", "2024-01-02T10:00:00"], "two time zones.*row 1"),
    "missing": (["2024-01-01", None], "no value in.*row 1|row 1 has no value"),
    "words": (["first", "second"], "row 0 has 'first', which is no number and no date"),
    "one word": (["2024-01-01", "later"], "row 1 has 'later', which is no number and no date"),
    "a month 13": (["2024-01-01", "2024-13-01"], "row 1 has '2024-13-01'"),
    "days first": (["01/02/2024", "02/02/2024"], "row 0 has '01/02/2024'"),
    "times of the day": (pd.to_datetime(["2024-01-01 10:00", "2024-01-01 11:00"]).time, "times of the day"),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("way", ["frame", "csv"])
def test_what_does_not_order_is_refused_with_the_first_row(tmp_path, case, way):
    values, message = WRONG[case]
    source = pd.DataFrame(
        {"obs": [0, 1, 2], "action": 0, "reward": 0.0, "terminated": [False, True, True], "episode": [0, 0, 1]}
    )
    source["when"] = [*values, values[0]]
    if way == "csv":
        source.to_csv(tmp_path / "log.csv", index=False)
        source = tmp_path / "log.csv"
    with pytest.raises(gd.InputError, match=message) as caught:
        gd.load(source, columns={"steps": "when"})
    assert "when" in str(caught.value) and len(str(caught.value)) <= 400


def test_equal_steps_and_rows_after_an_end_are_refused():
    table = frame()
    with pytest.raises(gd.InputError, match="episode 1 has position 1 twice"):
        gd.load(table.assign(position=[0, 1, 2, 3, 0, 1, 1, 0, 1, 2, 3, 4]), columns={"steps": "position"})
    early = table.assign(terminated=table.index.isin([1, 3, 6, 11]))
    with pytest.raises(gd.InputError, match="episode 0 ends in row 1 and goes on in row 2"):
        gd.load(early)
    with pytest.raises(gd.InputError, match="episode 0 ends in row 1 and goes on in row 2"):
        gd.load(early.assign(next_obs=early["obs"] + 1))


def test_steps_without_episodes_must_increase_between_ends():
    table = frame().drop(columns="episode")
    assert len(gd.load(table, columns={"steps": "position"})) == len(table)
    lost = table.assign(terminated=table["terminated"] & (table.index != 3))
    with pytest.raises(gd.InputError, match="position goes from 3 to 0 in row 4, before an end"):
        gd.load(lost, columns={"steps": "position"})


def test_last_rows_are_what_the_user_says():
    table = frame().drop(columns=["terminated", "position"])
    ended = gd.load(table, episode_ends="terminated")
    np.testing.assert_array_equal(known(ended.terminated), frame()["terminated"])
    cut = gd.load(table, episode_ends="truncated")
    assert len(cut) == len(table) - 3 and known(cut.truncated).sum() == 3 and not known(cut.terminated).any()
    with pytest.raises(gd.InputError, match='must be "terminated" or "truncated", not'):
        gd.load(table, episode_ends="done")
    with pytest.raises(gd.InputError, match="needs to know the episodes"):
        gd.load(table.drop(columns="episode"), episode_ends="terminated")
    stored = gd.load(table.assign(next_obs=table["obs"] + 1), episode_ends="terminated")
    np.testing.assert_array_equal(known(stored.terminated), frame()["terminated"])


def test_a_column_that_only_looks_like_steps_is_not_believed_against_the_file(tmp_path):
    table = frame().drop(columns="position")
    table["time"] = np.random.default_rng(0).exponential(size=len(table))
    with pytest.raises(gd.InputError, match=r"the column time may order the rows, but goes back in row \d+"):
        gd.load(table)
    assert len(gd.load(table, columns={"steps": None})) == len(table)
    # Newest first is an order, too.
    newest = frame().iloc[::-1].rename(columns={"position": "time"})
    data = gd.load(newest)
    assert "rows were sorted by episode and time" in data.notes and known(data.terminated)[-1]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_a_file_with_next_states_may_have_a_column_of_steps(tmp_path, suffix):
    table = frame()
    table["next_obs"], path = table["obs"] + 1, tmp_path / f"log{suffix}"
    table = table.rename(columns={"position": "step"})
    if suffix == ".csv":
        table.to_csv(path, index=False)
    elif suffix == ".parquet":
        table.to_parquet(path)
    else:
        np.savez(path, allow_pickle=False, **{str(name): table[name].to_numpy() for name in table})
    np.testing.assert_array_equal(gd.load(path).states, table["obs"])


def test_next_states_that_are_missing_after_ends_do_not_make_floats_of_the_others(tmp_path):
    table = frame().drop(columns="position")
    table["next_obs"] = (table["obs"] + 1).where(~table["terminated"])
    assert table["next_obs"].dtype == np.float64
    table.to_csv(tmp_path / "log.csv", index=False)
    for source in (table, tmp_path / "log.csv"):
        assert gd.load(source).next_states.dtype.kind == "i"
