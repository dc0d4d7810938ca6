"""Files of one folder that number their episodes alike are not joined."""

import numpy as np
import pandas as pd
import pytest

import gradientdice as gd
from problems import known

NAMES = {"states": "states", "actions": "actions", "rewards": "rewards", "next_states": "next_states"}


def part(seed: int, first: int = 0, names: bool = False) -> pd.DataFrame:
    """Twenty episodes of five rows on three states."""
    rng = np.random.default_rng(seed)
    states = rng.integers(0, 3, (20, 6))
    episode = np.repeat(np.arange(first, first + 20), 5)
    return pd.DataFrame(
        {
            "states": states[:, :5].ravel(),
            "actions": rng.integers(0, 2, 100),
            "rewards": rng.normal(size=100),
            "next_states": states[:, 1:].ravel(),
            "truncated": np.tile(np.arange(5) == 4, 20),
            "episodes": [f"e{number}" for number in episode] if names else episode,
        }
    )


def episodes_of(log: gd.Transitions | gd.ScannedLog) -> int:
    rows = log if isinstance(log, gd.Transitions) else log.sample
    return len(np.unique(known(rows.episodes)))


def folder_of(path, *tables: pd.DataFrame):
    for number, table in enumerate(tables):
        table.to_parquet(path / f"{number}.parquet", row_group_size=40)
    return path


@pytest.mark.parametrize("read", [gd.load, gd.scan])
@pytest.mark.parametrize("names", [False, True])
def test_a_number_in_two_files_is_refused_or_two_episodes(tmp_path, read, names):
    folder = folder_of(tmp_path, part(0, names=names), part(1, names=names))
    with pytest.raises(gd.InputError, match=r'files 0.parquet and 1.parquet both have an episode e?0.*"per file"'):
        read(folder)
    assert episodes_of(read(folder, episodes="per file")) == 40
    assert episodes_of(read(folder, episodes="across files")) == 20


def test_per_file_scanned_is_per_file_loaded(tmp_path):
    folder = folder_of(tmp_path, part(0), part(1, 7), part(2))
    policy = gd.TabularPolicy([[0.2, 0.8]] * 3)
    loaded, scanned = (
        gd.evaluate(read(folder, episodes="per file"), policy, discount=0.9) for read in (gd.load, gd.scan)
    )
    assert scanned.num_clusters == loaded.num_clusters == 60
    np.testing.assert_allclose(scanned.value, loaded.value, rtol=1e-12)
    np.testing.assert_allclose(known(scanned.interval), known(loaded.interval), rtol=1e-9)


@pytest.mark.parametrize("read", [gd.load, gd.scan])
def test_numbers_of_their_own_and_episodes_that_go_on_need_no_word(tmp_path, read):
    assert episodes_of(read(folder_of(tmp_path, part(0), part(1, 20)))) == 40
    whole = part(3)
    # Cut within an episode.
    assert episodes_of(read(folder_of(tmp_path, whole.iloc[:48], whole.iloc[48:]))) == 20
    cut = whole.assign(terminated=whole.index == 47)
    with pytest.raises(gd.InputError, match="both have an episode 9"):
        read(folder_of(tmp_path, cut.iloc[:48], cut.iloc[48:]))


def test_the_word_is_for_several_files(tmp_path):
    part(0).to_parquet(tmp_path / "log.parquet")
    for read in (gd.load, gd.scan):
        with pytest.raises(gd.InputError, match="several Parquet files"):
            read(tmp_path / "log.parquet", episodes="per file")
        with pytest.raises(gd.InputError, match='episodes must be "per file" or "across files"'):
            read(tmp_path / "log.parquet", episodes="joined")


def test_a_scan_makes_sure_of_the_order_that_was_named(tmp_path):
    table = part(0).assign(day=[f"2024-01-{1 + row % 5:02d}" for row in range(100)])
    table.to_parquet(tmp_path / "log.parquet", row_group_size=13)
    assert len(gd.scan(tmp_path / "log.parquet", columns={"steps": "day"}).sample) == 100
    late = table.assign(day=[*table["day"][:12], "2024-01-01", *table["day"][13:]])
    late.to_parquet(tmp_path / "log.parquet", row_group_size=13)
    with pytest.raises(gd.InputError, match=r"day goes from .* within episode 2, in row 12. Sort the file"):
        gd.scan(tmp_path / "log.parquet", columns={"steps": "day"})
