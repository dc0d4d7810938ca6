"""A file that another process replaces while it is read: the old one or the new one, never a mixture."""

import os
from typing import Any

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.log.files import csv, npz, parquet

GOOD: Any = {"states": [0, 1, 2], "actions": [0, 1, 0], "rewards": [0.25, 1.0, 2.5], "next_states": [1, 2, 0]}


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".parquet"])
def test_a_file_that_is_replaced_while_it_is_read(tmp_path, monkeypatch, suffix):
    """Every column is of the file that was there first, however often another is put in its place."""
    path, rows = tmp_path / f"log{suffix}", 3
    numbers = iter(range(1000))

    def replace_it(*_):
        number = next(numbers)
        same = np.full(rows, number)
        new = tmp_path / f"new{suffix}"
        gd.Transitions(same, same, same, same).save(new)
        os.replace(new, path)

    replace_it()
    for module, name in ((csv, "_table"), (npz, "read_array"), (parquet, "require_in_all")):
        original = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *given, original=original, **named: (replace_it(), original(*given, **named))[1]
        )
    log = gd.load(path)
    assert len({*log.states, *log.actions, *log.rewards, *log.next_states}) == 1, "all of one file"


def test_a_folder_whose_files_are_replaced_while_they_are_read(tmp_path, monkeypatch):
    log, original = gd.Transitions(**GOOD), parquet.require_in_all
    log.save(tmp_path / "1.parquet")

    def replace_it(*given):
        log.save(tmp_path / "1.parquet")
        return original(*given)

    assert gd.load(tmp_path).rewards.tolist() == GOOD["rewards"]
    monkeypatch.setattr(parquet, "require_in_all", replace_it)
    with pytest.raises(gd.InputError, match="was replaced while it was read"):
        gd.load(tmp_path)
