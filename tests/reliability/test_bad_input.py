"""Wrong calls and damaged files, by the thousand: each ends in a sentence, soon, or in the right answer."""

import os
import time
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import gradientdice as gd
import shapes
from gradientdice.log.fields import ARRAYS
from reliability.calls import wrong_calls
from reliability.damage import damaged_files, same_logs, scanned

LONGEST = 5.0  # seconds
# Sentences, not listings: the longest lists the names of a dozen columns.
LONGEST_MESSAGE = 700


@pytest.mark.parametrize("every", [pytest.param(11, id="some"), pytest.param(1, id="all", marks=pytest.mark.slow)])
def test_wrong_calls_end_in_a_sentence(every, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a word may be the name of a folder to write to
    monkeypatch.setattr(shapes, "CALLS", 0)  # wrong shapes must reach the library's own refusals
    refused = 0
    for number, call in enumerate(wrong_calls(tmp_path)):
        if number % every:
            continue
        begun = time.monotonic()
        try:
            call.function(**call.arguments)
        except gd.InputError as error:
            refused += 1
            assert len(str(error)) < LONGEST_MESSAGE and "\n" not in str(error), call
        except Exception as error:
            raise AssertionError(f"{call} ended in {type(error).__name__}") from error
        assert time.monotonic() - begun < LONGEST, call
    assert refused > 5000 / every


@pytest.mark.parametrize("count", [600, pytest.param(100_000, marks=pytest.mark.slow)])
def test_damaged_files_are_refused_or_whole(count, tmp_path):
    refused_or_whole(damaged_files(tmp_path, count), gd.load, count)


@pytest.mark.parametrize("count", [200, pytest.param(20_000, marks=pytest.mark.slow)])
def test_damaged_files_are_refused_or_whole_when_scanned(count, tmp_path):
    refused_or_whole(damaged_files(tmp_path, count, (".parquet",)), scanned, count)


def refused_or_whole(files, read, count):
    refused = 0
    for path, log, what in files:
        begun = time.monotonic()
        try:
            found = read(path)
        except gd.InputError as error:
            refused += 1
            assert path.name in str(error) and "\n" not in str(error), what
        except Exception as error:
            raise AssertionError(f"{what} ended in {type(error).__name__}: {error}") from error
        else:
            assert same_logs(found, log), what
        assert time.monotonic() - begun < LONGEST, what
    assert refused > count / 4


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.one_of(st.integers(-3, 3), st.floats(), st.none(), st.text(max_size=1)), max_size=4),
    arrays(st.sampled_from([np.float64, np.int8, np.complex128, np.bool_, np.dtype("U2"), np.dtype("M8[s]")]), st.sampled_from([(), (3,), (3, 2), (3, 0), (0,), (3, 1, 1)])),
)  # fmt: skip


@settings(max_examples=300)
@given(st.dictionaries(st.sampled_from([field.name for field in fields(gd.Transitions)]), ANYTHING, max_size=3))
def test_any_log_is_refused_or_sound(changes):
    good = {"states": [0, 1, 2], "actions": [0, 1, 0], "rewards": [0.0, 1.0, 2.0], "next_states": [1, 2, 0]}
    try:
        log = gd.Transitions(**{**good, **changes})
    except gd.InputError as error:
        assert str(error)
        return
    assert len(log) == len(log.states) > 0
    for name in ARRAYS:
        array = getattr(log, name)
        if array is not None:
            assert array.dtype.kind in "biuf" and array.size and np.isfinite(array).all() and not array.flags.writeable


@settings(max_examples=200)
@given(ANYTHING)
def test_any_policy_is_refused_or_sound(value):
    for make in (
        lambda: gd.TabularPolicy(value).probabilities,
        lambda: gd.LoggedPolicy(next_probabilities=value).next_probabilities,
        lambda: gd.DiscretePolicy(lambda states: value, 2).probabilities_at(np.zeros((3, 1))),
        lambda: gd.SamplingPolicy(lambda states, rng: value).sample(np.zeros((3, 1)), np.random.default_rng(0)),
    ):
        try:
            found = make()
        except gd.InputError:
            continue
        assert found is not None and found.dtype.kind in "biuf" and np.isfinite(found).all()


@settings(max_examples=100)
@given(content=st.binary(max_size=300), suffix=st.sampled_from([".npz", ".parquet", ".csv"]))
def test_any_bytes_are_refused_or_a_log(tmp_path_factory, content, suffix):
    path = tmp_path_factory.getbasetemp() / f"bytes-{os.getpid()}{suffix}"
    path.write_bytes(content)
    with pytest.raises(gd.InputError):
        gd.load(path)
