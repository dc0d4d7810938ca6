"""What a scanned log refuses: files that are damaged, change or vanish, and columns that are not what they seem."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import gradientdice as gd
from gradientdice.log.scanning import passes
from scans import as_function, as_table, features, same, small_table, with_fields, written

DATA, TARGET = small_table(noise=1.0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr("gradientdice.log.scanning.opening.PART_ROWS", 1)
    return written(tmp_path / "log", DATA, cuts=(50, 120), group=40)


def rewritten(path, **columns) -> None:
    """The same file with other columns; None drops one."""
    table = pq.read_table(path)
    for name, values in columns.items():
        place = table.column_names.index(name)
        table = table.remove_column(place) if values is None else table.set_column(place, name, [values])
    pq.write_table(table, path, row_group_size=40)


def gone(path):
    path.unlink()


def other_rewards(path):
    # Of the same size and layout, so that nothing but the time tells.
    before = path.stat()
    rewritten(path, rewards=pq.read_table(path)["rewards"].to_numpy()[::-1])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))


def fewer_rows(path):
    pq.write_table(pq.read_table(path).slice(0, 5), path)


CHANGES = pytest.mark.parametrize("change", [gone, other_rewards, fewer_rows])


@CHANGES
def test_a_file_that_changes_before_it_is_read(folder, change):
    log = gd.scan(folder)
    change(folder / "001.parquet")
    with pytest.raises(gd.InputError, match=r"001.parquet (is no longer there|was changed).* [Ss]can"):
        gd.evaluate(log, TARGET, discount=0.9)


@CHANGES
@pytest.mark.parametrize("moment", [("counts", 2), ("scores", 0), ("scores", 5)])
def test_a_file_that_changes_during_or_between_the_passes(folder, monkeypatch, change, moment):
    log, original = gd.scan(folder), passes.part_sums

    def changing(log, work, part, found):
        if (work.name, part) == moment:
            change(folder / "002.parquet")
        return original(log, work, part, found)

    monkeypatch.setattr(passes, "part_sums", changing)
    with pytest.raises(gd.InputError, match=r"002.parquet (is no longer there|was changed).* [Ss]can"):
        gd.evaluate(log, TARGET, discount=0.9)


def test_a_folder_without_parquet_is_named(tmp_path):
    with pytest.raises(gd.InputError, match="is a folder without Parquet files"):
        gd.scan(tmp_path)


@pytest.mark.parametrize("read", [gd.scan, gd.load])
@pytest.mark.parametrize("content", [b"", b"some text", b"PAR1" + bytes(40)])
@pytest.mark.parametrize("name", ["000.txt", "001.parquet", "zzz.parquet"])
def test_a_file_of_the_folder_that_is_no_parquet_is_named(folder, read, content, name):
    (folder / name).write_bytes(content)
    with pytest.raises(gd.InputError, match=f"{name} is not a readable Parquet file"):
        read(folder)


@pytest.mark.parametrize("name", ["terminated", "episodes", "rewards"])
def test_a_column_that_one_file_lacks_is_named(folder, name):
    rewritten(folder / "000.parquet", **{name: None})
    with pytest.raises(gd.InputError, match=f"000.parquet lacks the column '{name}', which other files"):
        gd.scan(folder)


def test_a_column_that_is_there_twice():
    table = as_table(DATA)
    with pytest.raises(gd.InputError, match="two columns named 'rewards'"):
        gd.scan(table.append_column("rewards", table["rewards"]))


@pytest.mark.parametrize(
    ("name", "other"), [("terminated", "done"), ("episodes", "Episode_ID"), ("weights", "sample_weight")]
)
def test_a_field_under_another_name_is_not_left_out_in_silence(name, other):
    table = as_table(with_fields(DATA, weights=np.ones(len(DATA))))
    table = table.rename_columns([other if column == name else column for column in table.column_names])
    with pytest.raises(gd.InputError, match=f"has no column '{name}', but '{other}'"):
        gd.scan(table)
    assert gd.scan(table, columns={name: other}).columns[name] == other
    assert name not in gd.scan(table, columns={name: None}).columns


def test_a_filter_that_leaves_no_rows():
    nothing = (ds.field("states") == 3) & (ds.field("states") * 2 == 7)
    for functions in (None, gd.Tabular(6, 2)):
        with pytest.raises(gd.InputError, match="no rows"):
            gd.evaluate(gd.scan(as_table(DATA), filter=nothing), TARGET, discount=0.9, functions=functions)


def test_a_name_that_is_missing_is_no_episode():
    names = pa.array([None, *(str(name) for name in DATA.episodes[1:])])  # pyright: ignore[reportOptionalSubscript]
    table = as_table(DATA)
    table = table.set_column(table.column_names.index("episodes"), "episodes", names)
    with pytest.raises(gd.InputError, match="episodes has no value in row 0"):
        gd.evaluate(gd.scan(table), TARGET, discount=0.9)


@pytest.mark.parametrize(("name", "value"), [("states", -1), ("states", 99), ("next_states", -1), ("actions", 7)])
@pytest.mark.parametrize("policy", [TARGET, as_function(TARGET)], ids=["table", "function"])
def test_what_is_outside_the_table_is_named_with_its_place(folder, name, value, policy):
    numbers = pq.read_table(folder / "002.parquet")[name].to_numpy().copy()
    rows = np.flatnonzero(~pq.read_table(folder / "002.parquet")["terminated"].to_numpy())
    row = int(rows[rows >= 45][0])
    numbers[row] = value
    rewritten(folder / "002.parquet", **{name: numbers})
    with pytest.raises(
        gd.InputError, match=rf"002.parquet row groups 1 to 1, rows from 0 on: .*{name}.*row {row - 40}"
    ):
        gd.evaluate(gd.scan(folder), policy, discount=0.9, functions=gd.Tabular(6, 2))


def test_an_initial_state_that_is_no_number_is_named():
    table = as_table(DATA).append_column("initial_states", [[[0.0], *[[np.nan]] * (len(DATA) - 1)]])
    with pytest.raises(gd.InputError, match="initial_states has a value that is not finite"):
        gd.evaluate(gd.scan(table), TARGET, discount=0.9)


@pytest.mark.parametrize("functions", [None, features()], ids=["table", "features"])
def test_batches_whose_rows_all_count_nothing(folder, functions):
    weights = (np.arange(len(DATA)) % 7 > 2).astype(float)
    weights[130:200] = 0
    data = with_fields(DATA, weights=weights)
    table, policy = as_table(data), as_function(TARGET)
    whole = gd.evaluate(data, policy, gd.GradientDICE(0.9), functions=functions)
    same(gd.evaluate(gd.scan(table, batch_rows=2), policy, gd.GradientDICE(0.9), functions=functions), whole, 1e-10)
    nothing = as_table(data).set_column(table.column_names.index("weights"), "weights", [np.zeros(len(data))])
    with pytest.raises(gd.InputError, match="weights are all zero"):
        gd.evaluate(gd.scan(nothing), policy, gd.GradientDICE(0.9), functions=functions)


@pytest.mark.parametrize("given", [{"effort": "much"}, {"progress": "yes"}, {"seed": -1}, {"confidence": 2.0}])
def test_arguments_are_checked_before_the_log_is_read(folder, monkeypatch, given):
    monkeypatch.setattr(passes, "part_sums", None)
    with pytest.raises(gd.InputError, match=next(iter(given))):
        gd.evaluate(gd.scan(folder), TARGET, discount=0.9, **given)


def test_its_name_is_short(folder):
    assert len(repr(gd.scan(folder))) < 300


@pytest.mark.parametrize("read", [gd.load, lambda path: gd.scan(path).sample], ids=["load", "scan"])
def test_a_description_with_another_number_of_rows(tmp_path, read):
    """Of a file without checksums: what is said of its row groups must agree with what is said of the whole."""
    path = tmp_path / "log.parquet"
    pq.write_table(as_table(DATA), path)
    content = path.read_bytes()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    # As Thrift writes it: doubled, in groups of seven bits.
    number = bytes([2 * len(DATA) & 0x7F | 0x80, 2 * len(DATA) >> 7])
    refused = 0
    for place in range(start, len(content) - 8):
        if content[place : place + 2] == number:
            path.write_bytes(content[:place] + bytes([number[0] ^ 4]) + content[place + 1 :])
            try:
                found = read(path)
            except gd.InputError:
                refused += 1
            else:
                np.testing.assert_array_equal(found.rewards, DATA.rewards)
    assert refused >= 2, "that of the file and that of its row group"


@pytest.mark.parametrize("batch_rows", [7, 1000])
def test_every_column_is_the_one_that_was_written(tmp_path, batch_rows):
    """Two columns of a file that change places have whole pages each."""
    data = with_fields(DATA, weights=np.ones(len(DATA)), initial_states=DATA.states[:30])
    path = tmp_path / "log.parquet"
    data.save(path)
    assert len(gd.scan(path, batch_rows=batch_rows).sample) == len(data)
    table = pq.read_table(path)
    for name in ("rewards", "states", "initial_states"):
        place = table.column_names.index(name)
        pq.write_table(table.set_column(place, name, table[name].take(pa.array(np.arange(len(data))[::-1]))), path)
        with pytest.raises(gd.InputError, match=f"the column {name} is not the one that was written"):
            _ = gd.scan(path, batch_rows=batch_rows).sample


def test_types_that_are_widened_have_no_checksum(tmp_path):
    for name, kind in (("a", np.int8), ("b", np.int64)):
        with_fields(DATA, states=DATA.states.astype(kind)).save(tmp_path / f"{name}.parquet")
    assert len(gd.scan(tmp_path, episodes="per file").sample) == 2 * len(DATA)
