"""One damaged cell does not decide what a column is."""

import numpy as np
import pandas as pd
import pytest

import gradientdice as gd
from problems import known

ROWS = 4_000


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "obs": rng.integers(1, 12, ROWS),
            "action": rng.integers(0, 3, ROWS),
            "reward": rng.normal(size=ROWS).round(3),
            "next_obs": rng.integers(1, 12, ROWS),
        }
    )


def given(table: pd.DataFrame, way: str, folder) -> object:
    """The table as a frame of text, as a CSV file, as Parquet."""
    if way == "csv":
        table.to_csv(folder / "log.csv", index=False)
        return folder / "log.csv"
    if way == "parquet":
        table.astype(str).to_parquet(folder / "log.parquet")
        return folder / "log.parquet"
    return table


@pytest.mark.parametrize("way", ["frame", "csv", "parquet"])
@pytest.mark.parametrize("column", ["obs", "action", "reward", "next_obs"])
def test_a_dash_among_numbers_is_refused_with_its_row(tmp_path, way, column):
    table = frame().astype({column: object})
    table.loc[[17, 400], column] = ["-", "?"]
    with pytest.raises(gd.InputError, match=rf"column {column} holds numbers, but row 17 has '-' \(2 such cells\)"):
        gd.load(given(table, way, tmp_path))


@pytest.mark.parametrize("way", ["frame", "csv", "parquet"])
def test_numbers_as_text_are_the_same_log(tmp_path, way):
    plain, text = gd.load(frame()), gd.load(given(frame().astype(str), way, tmp_path))
    for field in ("states", "actions", "rewards", "next_states"):
        np.testing.assert_array_equal(getattr(plain, field), getattr(text, field))
        assert getattr(plain, field).dtype == getattr(text, field).dtype
    assert text.state_names is None and text.action_names is None


def test_text_in_a_scanned_file_is_the_same_log(tmp_path):
    given(frame().astype(str), "parquet", tmp_path)
    names = {"states": "obs", "actions": "action", "rewards": "reward", "next_states": "next_obs"}
    np.testing.assert_array_equal(gd.scan(tmp_path / "log.parquet", columns=names).sample.states, frame()["obs"])
    damaged = frame().astype(str)
    damaged.loc[5, "action"] = "-"
    damaged.to_parquet(tmp_path / "log.parquet")
    with pytest.raises(gd.InputError, match="column action holds numbers, but row 5 has '-'"):
        _ = gd.scan(tmp_path / "log.parquet", columns=names).sample


def test_a_late_cell_that_does_not_fit_is_named(tmp_path):
    # Arrow has taken the column for whole numbers by then.
    rows = 200_000
    table = pd.DataFrame({"obs": 0, "action": 0, "reward": 0, "next_obs": 0}, index=range(rows)).astype(object)
    table.loc[rows - 1, "reward"] = 0.5
    table.to_csv(tmp_path / "log.csv", index=False)
    assert gd.load(tmp_path / "log.csv").rewards[-1] == 0.5
    table.loc[rows - 1, "reward"] = "x"
    table.to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(gd.InputError, match=f"column reward holds numbers, but row {rows - 1} has 'x'"):
        gd.load(tmp_path / "log.csv")


def test_words_stay_words_and_long_numbers_names(tmp_path):
    table = frame().assign(action=[f"drug {code}" for code in frame()["action"]])
    table["obs"] = table["next_obs"] = np.where(frame()["obs"] > 6, "9" * 25, "8" * 25)
    data = gd.load(given(table, "frame", tmp_path))
    assert data.action_names == ("drug 0", "drug 1", "drug 2") and data.state_names == ("8" * 25, "9" * 25)


def test_a_dropped_outcome_is_remembered_by_files(tmp_path):
    episode = np.repeat(np.arange(40), 5)
    paid = (np.arange(200) % 5 == 4) * (episode % 2)
    data = gd.load({"obs": np.arange(200) % 5 // 2, "action": episode % 2, "reward": paid, "episode": episode})
    assert data.dropped_rows is not None and data.dropped_rows.count == 40 and data.dropped_rows.surprise > 5
    for suffix in (".npz", ".parquet", ".csv"):
        data.save(tmp_path / f"log{suffix}")
        assert gd.load(tmp_path / f"log{suffix}").dropped_rows == data.dropped_rows


def test_text_in_npz_is_numbers_too(tmp_path):
    np.savez(
        tmp_path / "log.npz",
        allow_pickle=False,
        **{str(name): column.to_numpy().astype("U") for name, column in frame().items()},
    )
    np.testing.assert_array_equal(gd.load(tmp_path / "log.npz").states, frame()["obs"])


def test_names_of_episodes_stay_names():
    table = frame().iloc[:4].assign(done=True, episode=["007", "7", "1e2", "100"])
    assert len(np.unique(known(gd.load(table).episodes))) == 4
    many = frame().assign(done=True, episode=[str(number) for number in range(ROWS)])
    many.loc[9, "episode"] = "-"
    with pytest.raises(gd.InputError, match="column episode holds numbers, but row 9 has '-'"):
        gd.load(many)
    days = (
        frame()
        .iloc[:4]
        .assign(done=True, episode=pd.to_datetime(["2024-01-01", "2024-01-01", "2024-01-02", "2024-01-03"]))
    )
    assert known(gd.load(days.assign(done=[False, True, True, True])).episodes).tolist() == [0, 0, 1, 2]
