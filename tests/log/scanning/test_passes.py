"""Passes: reduced in one order, resumed from the last whole part, and refused where they belong to something else."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.log.scanning import parts, passes
from gradientdice.log.scanning.passes import Run
from scans import as_function, features, small_table, with_fields, written

DATA, TARGET = small_table(noise=1.0)


class Order:
    """Writes down in which order parts are merged."""

    name, fields, is_heavy = "order", (), False

    def over(self, part, batches):
        return {"text": np.array([part + 1.0])}

    def merged(self, left, right):
        # Not associative, so that the shape of the tree shows.
        return {"text": 3 * left["text"] - 0.5 * right["text"]}


def tree(values: list[float]) -> float:
    """Neighbours in pairs, level by level; one that is left over waits."""
    while len(values) > 1:
        pairs = [3 * a - 0.5 * b for a, b in zip(values[::2], values[1::2], strict=False)]
        values = pairs + ([values[-1]] if len(values) % 2 else [])
    return values[0]


@pytest.fixture
def log(tmp_path, monkeypatch) -> gd.ScannedLog:
    monkeypatch.setattr("gradientdice.log.scanning.opening.PART_ROWS", 1)
    return gd.scan(written(tmp_path / "log", DATA, group=30), batch_rows=13)


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("heavy", [False, True])
def test_several_threads_read_only_for_passes_that_wait_for_them(log, monkeypatch, cores, heavy):
    monkeypatch.setattr(passes, "usable_cores", lambda: cores)
    read, asked = parts.ArrowPart.tables, set()

    def watched(part, *columns, threads):
        asked.add(threads)
        return read(part, *columns, threads=threads)

    class Rows(Order):
        is_heavy = heavy

        def over(self, part, batches):
            return {"text": np.array([sum(len(batch.data) for batch in batches)])}

    monkeypatch.setattr(parts.ArrowPart, "tables", watched)
    Run().sums(log, Rows())
    assert asked == {cores > 1 and not heavy}


def test_the_order_of_reduction_follows_from_the_number_of_parts(log):
    for count in range(1, len(log.parts) + 1):
        some = gd.ScannedLog(log.parts[:count], log.columns)
        assert Run().sums(some, Order())["text"] == tree([part + 1.0 for part in range(count)])


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("functions", [None, features()], ids=["table", "features"])
@pytest.mark.parametrize("stop", [1, 5, 12, 17])
def test_an_interrupted_answer_goes_on_bit_for_bit(log, tmp_path, monkeypatch, functions, stop):
    """Whichever part it is interrupted at, in the first pass or the second."""
    policy = as_function(TARGET) if functions else TARGET
    whole = gd.evaluate(log, policy, discount=0.9, functions=functions)
    original, read = passes.part_sums, []

    def failing(log, work, part, found):
        if len(read) == stop:
            raise Interrupted
        read.append((work.name, part))
        return original(log, work, part, found)

    folder = tmp_path / "checkpoint"
    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(passes, "part_sums", failing)
        gd.evaluate(log, policy, discount=0.9, functions=functions, checkpoint=folder)
    again = []

    def counting(log, work, part, found):
        again.append((work.name, part))
        return original(log, work, part, found)

    with monkeypatch.context() as patch:
        patch.setattr(passes, "part_sums", counting)
        found = gd.evaluate(log, policy, discount=0.9, functions=functions, checkpoint=folder)
    assert (found.value, found.interval) == (whole.value, whole.interval)
    assert not set(read) & set(again)


def test_episodes_in_no_order_go_on_too(tmp_path, monkeypatch):
    monkeypatch.setattr("gradientdice.log.scanning.opening.PART_ROWS", 1)
    order = np.random.default_rng(0).permutation(40)
    data = with_fields(DATA, episodes=order[DATA.episodes])
    log = gd.scan(written(tmp_path / "log", data, group=50))
    whole = gd.evaluate(log, TARGET, discount=0.9)
    for _ in range(2):
        found = gd.evaluate(log, TARGET, discount=0.9, checkpoint=tmp_path / "checkpoint")
        assert (found.value, found.interval) == (whole.value, whole.interval)


def test_a_checkpoint_of_another_policy_or_log_is_refused(log, tmp_path):
    gd.evaluate(log, as_function(TARGET), discount=0.9, functions=features(), checkpoint=tmp_path / "checkpoint")
    other = gd.DiscretePolicy(lambda states: np.tile([0.35, 0.65], (len(states), 1)), 2)
    with pytest.raises(gd.InputError, match="policy, functions or settings"):
        gd.evaluate(log, other, discount=0.9, functions=features(), checkpoint=tmp_path / "checkpoint")
    changed = gd.scan(written(tmp_path / "other", DATA, group=31), batch_rows=13)
    with pytest.raises(gd.InputError, match=r"\(log"):
        gd.evaluate(
            changed, as_function(TARGET), discount=0.9, functions=features(), checkpoint=tmp_path / "checkpoint"
        )


def test_a_policy_that_differs_in_rare_states_only_has_no_claim_to_the_checkpoint(log, tmp_path):
    """The first rows tell nothing of it."""
    rare = DATA.next_states[-1]

    def policy(moved: bool) -> gd.DiscretePolicy:
        def probabilities(states):
            here = (states == rare) & moved
            return np.where(here[:, None], [0.9, 0.1], [0.5, 0.5])

        return gd.DiscretePolicy(probabilities, 2)

    begun = np.arange(len(DATA)) < 64
    states, following = (np.where(begun, 1, array) for array in (DATA.states, DATA.next_states))
    some = with_fields(DATA, states=states, next_states=following)
    assert rare != 1
    scanned = gd.scan(written(tmp_path / "some", some, group=30), batch_rows=13)
    for moved in (False, True):
        options = {"discount": 1.0, "functions": features()}
        alone = gd.evaluate(scanned, policy(moved), **options)
        if moved:
            with pytest.raises(gd.InputError, match="policy, functions or settings"):
                gd.evaluate(scanned, policy(moved), checkpoint=tmp_path / "checkpoint", **options)
        else:
            assert (
                gd.evaluate(scanned, policy(moved), checkpoint=tmp_path / "checkpoint", **options).value == alone.value
            )


def test_a_checkpoint_of_another_version_is_refused(log, tmp_path, monkeypatch):
    gd.evaluate(log, TARGET, discount=0.9, checkpoint=tmp_path)
    monkeypatch.setattr(passes, "provenance", lambda: {"versions": {"gradientdice": "0.0", "numpy": "0.0"}})
    with pytest.raises(gd.InputError, match=r"\(versions"):
        gd.evaluate(log, TARGET, discount=0.9, checkpoint=tmp_path)


@pytest.mark.parametrize("name", ["x" * 300, "a\0b"])
def test_a_folder_that_cannot_be_is_named(log, tmp_path, name):
    with pytest.raises(gd.FileError, match="cannot be read|could not be made"):
        gd.evaluate(log, TARGET, discount=0.9, checkpoint=tmp_path / name)


def test_a_file_in_place_of_the_folder_is_kept(log, tmp_path):
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(gd.FileError, match="could not be made"):
        gd.evaluate(log, TARGET, discount=0.9, checkpoint=tmp_path / "mine")
    assert (tmp_path / "mine").read_text() == "mine"
