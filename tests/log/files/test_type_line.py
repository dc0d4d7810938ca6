"""The line before a CSV file's header: a checksum that finds every change, and no obstacle to other programs."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gradientdice as gd

GOOD: Any = {"states": [0, 1, 2], "actions": [0, 1, 0], "rewards": [0.25, 1.0, 2.5], "next_states": [1, 2, 0]}


@pytest.fixture
def path(tmp_path):
    gd.Transitions(**GOOD).save(tmp_path / "log.csv")
    return tmp_path / "log.csv"


def test_every_flipped_bit_is_found(path):
    """In the numbers, the names and the line itself; where a file is still read, its numbers are the same."""
    content, log = path.read_bytes(), gd.load(path)
    refused = 0
    for bit in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            found = gd.load(path)
        except gd.InputError:
            refused += 1
        else:
            assert all(np.array_equal(getattr(found, name), getattr(log, name)) for name in GOOD), bit
            assert found.rewards.dtype == log.rewards.dtype and found.terminated is None
    assert refused > 0.97 * 8 * len(content)


def test_a_digit_that_became_another(path):
    path.write_text(path.read_text().replace("0.25", "0.75"))
    with pytest.raises(gd.InputError, match="the checksum in its first line differs.*delete that line"):
        gd.load(path)
    path.write_text(path.read_text().split("\n", 1)[1])
    assert gd.load(path).rewards[0] == 0.75, "on purpose"


def test_lost_and_repeated_rows(path):
    lines = path.read_text().splitlines(keepends=True)
    for changed in (lines[:-1], [*lines, lines[-1]], [*lines[:2], *lines[:1:-1]]):
        path.write_text("".join(changed))
        with pytest.raises(gd.InputError, match="checksum"):
            gd.load(path)


def test_a_type_that_became_another(path):
    path.write_text(path.read_text().replace('"states": "int64"', '"states": "uint8"'))
    with pytest.raises(gd.InputError, match="checksum"):
        gd.load(path)


def test_line_ends_of_another_system_are_no_damage(path):
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert gd.load(path).rewards.tolist() == GOOD["rewards"]


def test_a_line_without_a_checksum_is_read(path):
    line, rest = path.read_text().split("\n", 1)
    types = json.loads(line[1:])
    assert types.pop("checksum").startswith("crc32 ")
    path.write_text("#" + json.dumps(types) + "\n" + rest.replace("0.25", "0.75"))
    assert gd.load(path).rewards[0] == 0.75


def test_other_programs_read_the_table(path):
    frame = pd.read_csv(path, comment="#")
    assert {name: frame[name].tolist() for name in frame} == GOOD
