"""Opening a scanned log: what is read, in which parts, and what is refused."""

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import gradientdice as gd
from gradientdice.log.scanning import parts
from scans import as_table, small_table, with_fields, written

DATA, _ = small_table(noise=1.0)


def rows(log: gd.ScannedLog, field: str) -> np.ndarray:
    read = [getattr(batch.data, field) for part in range(len(log.parts)) for batch in log.batches(part, field)]
    return np.concatenate(read)


@pytest.mark.parametrize("batch_rows", [1, 7, 64, 1000])
def test_all_rows_come_once_in_order(tmp_path, batch_rows):
    log = gd.scan(written(tmp_path, DATA, cuts=(50, 51), group=20), batch_rows=batch_rows)
    for field in ("states", "rewards", "episodes", "terminated"):
        np.testing.assert_array_equal(rows(log, field), getattr(DATA, field))


def test_one_thread_reads_the_same_batches(tmp_path):
    log = gd.scan(written(tmp_path, DATA, cuts=(50, 51), group=20), batch_rows=30)
    for part in range(len(log.parts)):
        both = zip(log.batches(part, "episodes"), log.batches(part, "episodes", threads=False), strict=True)
        for batch, alone in both:
            np.testing.assert_array_equal(batch.data.rewards, alone.data.rewards)


def test_parts_follow_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr("gradientdice.log.scanning.opening.PART_ROWS", 100)
    log = gd.scan(written(tmp_path, DATA, group=40))
    sizes = [sum(len(batch.data) for batch in log.batches(part)) for part in range(len(log.parts))]
    assert sizes[:-1] == [80] * (len(sizes) - 1) and sum(sizes) == len(DATA)


def test_only_the_fields_that_are_asked_for_are_read(tmp_path, monkeypatch):
    asked = []
    original = parts.ArrowPart.tables

    def spy(self, columns, batch_rows, *, threads):
        asked.append(columns)
        return original(self, columns, batch_rows, threads=threads)

    monkeypatch.setattr(parts.ArrowPart, "tables", spy)
    list(gd.scan(written(tmp_path, DATA)).batches(0, "weights"))
    assert asked == [["states", "actions", "rewards", "next_states"]]


def test_row_groups_that_the_filter_rules_out_are_no_parts(tmp_path, monkeypatch):
    monkeypatch.setattr("gradientdice.log.scanning.opening.PART_ROWS", 1)
    folder = written(tmp_path, DATA, group=30)
    assert len(gd.scan(folder).parts) > len(gd.scan(folder, filter=ds.field("episodes") < 5).parts) > 0


def test_files_of_different_widths(tmp_path):
    folder = written(tmp_path, DATA, cuts=(60,))
    first = pq.read_table(folder / "000.parquet")
    pq.write_table(first.set_column(0, "states", first["states"].cast(pa.int8())), folder / "000.parquet")
    np.testing.assert_array_equal(rows(gd.scan(folder), "states"), DATA.states)


def test_the_sample_of_a_small_log_is_the_log(tmp_path):
    data = with_fields(DATA, initial_states=DATA.states[:9])
    sample = gd.scan(written(tmp_path, data, cuts=(50, 120), group=20), batch_rows=11).sample
    for field in ("states", "rewards", "episodes", "initial_states"):
        np.testing.assert_array_equal(getattr(sample, field), getattr(data, field))


def test_a_sample_decodes_no_more_row_groups_than_it_needs(tmp_path, monkeypatch):
    monkeypatch.setattr("gradientdice.log.scanning.log.SAMPLE_ROWS", 60)
    log, decoded = gd.scan(written(tmp_path, DATA, group=30), batch_rows=5), []
    read = parts.ArrowPart.tables

    def watched(part, *columns, **options):
        decoded.extend(group.id for group in part.fragment.row_groups)
        return read(part, *columns, **options)

    monkeypatch.setattr(parts.ArrowPart, "tables", watched)
    assert len(log.sample) == 60
    assert decoded == [0, 1]
    filtered = gd.scan(tmp_path, batch_rows=5, filter=ds.field("states") >= 0)
    decoded.clear()
    assert len(filtered.sample) == 60
    # Here 61 rows must show that the log has more than 60.
    assert decoded == [0, 1, 2, 0, 1]


def test_the_sample_of_a_large_log_has_whole_beginnings_of_episodes(tmp_path, monkeypatch):
    monkeypatch.setattr("gradientdice.log.scanning.log.SAMPLE_ROWS", 100)
    monkeypatch.setattr("gradientdice.log.scanning.opening.PART_ROWS", 1)
    sample = gd.scan(written(tmp_path, DATA, group=25), batch_rows=5).sample
    assert len(sample) < len(DATA)
    starts = {int(DATA.episodes[row]): row for row in DATA.first_rows}  # pyright: ignore[reportOptionalSubscript]
    assert sample.episodes is not None
    for episode, row in zip(np.unique(sample.episodes), sample.first_rows, strict=True):
        assert sample.rewards[row] == DATA.rewards[starts[int(episode)]]


@pytest.mark.parametrize(
    ("source", "message"),
    [("missing.parquet", "There is no file"), (3, "not int"), ("log.csv", "scan reads Parquet")],
)
def test_what_is_no_log_is_refused(tmp_path, monkeypatch, source, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("a,b\n1,2\n")
    with pytest.raises(gd.InputError, match=message):
        gd.scan(source)


def test_a_missing_column_is_named():
    with pytest.raises(gd.InputError, match="rewards"):
        gd.scan(as_table(DATA).drop_columns(["rewards"]))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"columns": {"states": ["x", "y"]}}, "one column per field"),
        ({"columns": {"steps": "t"}}, "no column 't'"),
        ({"episodes": "per file"}, "several Parquet files"),
        ({"columns": {"reward": "r"}}, "no field of a log"),
        ({"columns": {"rewards": None}}, "rewards"),
        ({"filter": "episodes < 3"}, "not str"),
        ({"client": "localhost:8786"}, "distributed.Client"),
    ],
)
def test_wrong_arguments_are_refused(given, message):
    with pytest.raises(gd.InputError, match=message):
        gd.scan(as_table(DATA), **given)


def test_a_field_can_be_left_out():
    assert "episodes" not in gd.scan(as_table(DATA), columns={"episodes": None}).columns


def test_names_of_folders_are_columns(tmp_path):
    table = as_table(DATA).drop_columns(["episodes"])
    for episode in (3, 7):
        (tmp_path / f"episodes={episode}").mkdir()
        pq.write_table(table.slice(episode, 5), tmp_path / f"episodes={episode}" / "log.parquet")
    log = gd.scan(tmp_path)
    np.testing.assert_array_equal(rows(log, "episodes"), np.repeat([3, 7], 5))
    np.testing.assert_array_equal(rows(log, "rewards"), DATA.rewards[[*range(3, 8), *range(7, 12)]])


@pytest.mark.parametrize("also", [None, ds.field("rewards") >= 0])
def test_a_filter_may_name_a_column_of_the_folders(tmp_path, also):
    for day in range(3):
        (tmp_path / f"day={day}").mkdir()
        table = as_table(DATA).slice(40 * day, 40)
        pq.write_table(table, tmp_path / f"day={day}" / "log.parquet", row_group_size=15)
    days = ds.field("day") >= 1
    expected = DATA.rewards[40:120]
    expected = expected if also is None else expected[expected >= 0]
    log = gd.scan(tmp_path, filter=days if also is None else days & also)
    np.testing.assert_array_equal(rows(log, "rewards"), expected)
    np.testing.assert_array_equal(log.sample.rewards, expected)


@pytest.mark.parametrize(
    ("wrong", "reason"), [(ds.field("dayx") >= 1, "dayx"), (ds.field("rewards") == "much", "string")]
)
def test_a_filter_that_does_not_fit_is_refused(tmp_path, wrong, reason):
    with pytest.raises(gd.InputError, match=rf"filter does not fit .*columns are states, .*{reason}"):
        gd.scan(written(tmp_path, DATA), filter=wrong)


def test_the_words_of_actions_are_known(tmp_path):
    with_fields(DATA, action_names=("stay", "go")).save(tmp_path / "log.parquet")
    assert gd.scan(tmp_path / "log.parquet").action_names == ("stay", "go")


def test_what_follows_an_end_may_be_missing():
    ended = np.flatnonzero(DATA.ended)
    following = [None if DATA.ended[row] else int(state) for row, state in enumerate(DATA.next_states)]
    table = as_table(DATA)
    table = table.set_column(table.column_names.index("next_states"), "next_states", [following])
    batch = next(gd.scan(table).batches(0, "terminated"))
    np.testing.assert_array_equal(batch.data.next_states[ended], DATA.states[ended])


def test_a_missing_value_is_named_with_its_place(tmp_path):
    rewards = pa.array([1.0] * 9 + [None])
    table = pa.table({"states": [0] * 10, "actions": [0] * 10, "rewards": rewards, "next_states": [0] * 10})
    pq.write_table(table, tmp_path / "log.parquet")
    with pytest.raises(gd.InputError, match=r"log.parquet.*rewards has no value in row 9"):
        list(gd.scan(tmp_path / "log.parquet").batches(0))


def test_a_bad_value_is_named_with_its_place(tmp_path):
    table = pa.table(
        {"states": [0] * 10, "actions": [0] * 10, "rewards": [0.0] * 7 + [np.nan] * 3, "next_states": [0] * 10}
    )
    pq.write_table(table, tmp_path / "log.parquet")
    with pytest.raises(gd.InputError, match=r"rows from 5 on: rewards .* first in row 2"):
        list(gd.scan(tmp_path / "log.parquet", batch_rows=5).batches(0))


def test_damage_is_found(tmp_path):
    DATA.save(tmp_path / "log.parquet")
    content = bytearray((tmp_path / "log.parquet").read_bytes())
    content[len(content) // 3] ^= 1
    (tmp_path / "log.parquet").write_bytes(content)
    with pytest.raises(gd.InputError, match="log.parquet"):
        list(gd.scan(tmp_path / "log.parquet").batches(0, "terminated", "episodes"))
