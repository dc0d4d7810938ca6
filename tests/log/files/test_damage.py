"""Damaged files and things that are no files: a sentence that names them, never a traceback, a hang or a wrong log."""

import base64
import io
import os
import re
import zipfile
import zlib
from typing import Any

import numpy as np
import pytest

import gradientdice as gd

GOOD: Any = {"states": [0, 1, 2], "actions": [0, 1, 0], "rewards": [0.0, 1.0, 2.0], "next_states": [1, 2, 0]}


def member(array) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def write_npz(path, changed: dict[str, bytes], kind=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, values in GOOD.items():
            archive.writestr(f"{name}.npy", changed.get(name, member(np.array(values))))
    return path


class TestNpz:
    @pytest.mark.parametrize("shape", ["(1000000000000000,)", "(3, 1000000000000)", "(-3,)", "(2,)", "(4,)"])
    def test_a_header_that_claims_another_shape(self, tmp_path, shape):
        good = member(np.array(GOOD["states"]))
        length = good.index(b"\n") + 1
        header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': {shape}, }}".encode()
        bad = good[:10] + header.ljust(length - 11) + b"\n" + good[length:]
        with pytest.raises(gd.InputError, match="log.npz"):
            gd.load(write_npz(tmp_path / "log.npz", {"states": bad}))

    def test_a_member_that_is_no_array(self, tmp_path):
        with pytest.raises(gd.InputError, match="not a readable"):
            gd.load(write_npz(tmp_path / "log.npz", {"states": b"just text"}))

    def test_damaged_compression(self, tmp_path):
        path = write_npz(tmp_path / "log.npz", {}, zipfile.ZIP_DEFLATED)
        content = bytearray(path.read_bytes())
        start = content.index(zlib.compress(b"")[:0] + b"states.npy") + len("states.npy")
        content[start + 5 : start + 25] = bytes(20)
        path.write_bytes(content)
        with pytest.raises(gd.InputError, match="not a readable"):
            gd.load(path)

    def test_encryption(self, tmp_path):
        path = write_npz(tmp_path / "log.npz", {})
        content = bytearray(path.read_bytes())
        for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            place = content.index(mark)
            content[place + offset] |= 1  # the flag says that the member is encrypted
        path.write_bytes(content)
        with pytest.raises(gd.InputError, match="encrypted"):
            gd.load(path)

    def test_two_members_of_one_name(self, tmp_path):
        path = write_npz(tmp_path / "log.npz", {})
        with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("rewards.npy", member(np.full(3, 9.0)))
        with pytest.raises(gd.InputError, match="two members named 'rewards.npy'"):
            gd.load(path)


@pytest.mark.parametrize("name", [None, 3, b"log.npz", "", [], 1.5])
def test_what_is_no_name_of_a_file(name: Any):
    with pytest.raises(gd.InputError, match="must be a file's name|takes a file, a data frame"):
        gd.load(name)
    with pytest.raises(gd.InputError, match="path must be a file's name"):
        gd.Transitions(**GOOD).save(name)


def test_names_that_the_system_refuses(tmp_path):
    for name in ("a\0b.npz", "x" * 300 + ".npz"):
        with pytest.raises(gd.InputError, match="cannot be read"):
            gd.load(tmp_path / name)
        with pytest.raises(gd.InputError, match="no name of a file|could not be written"):
            gd.Transitions(**GOOD).save(tmp_path / name)
    (tmp_path / "loop.npz").symlink_to(tmp_path / "loop.npz")
    with pytest.raises(gd.InputError, match="cannot be read"):
        gd.load(tmp_path / "loop.npz")
    (tmp_path / "file").write_text("x")
    with pytest.raises(gd.InputError, match="There is no file"):
        gd.load(tmp_path / "file" / "log.npz")


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet"])
def test_pipes_and_devices_are_no_files(tmp_path, suffix):
    os.mkfifo(tmp_path / f"pipe{suffix}")
    (tmp_path / f"null{suffix}").symlink_to("/dev/zero")
    for name in ("pipe", "null"):
        with pytest.raises(gd.InputError, match="a device or a pipe"):
            gd.load(tmp_path / f"{name}{suffix}")


@pytest.mark.parametrize("columns", [["states"], "states", {"states": 3}, {3: "states"}, 7])
def test_columns_are_a_dictionary_of_names(tmp_path, columns: Any):
    gd.Transitions(**GOOD).save(tmp_path / "log.npz")
    with pytest.raises(gd.InputError, match="columns must be a dictionary"):
        gd.load(tmp_path / "log.npz", columns=columns)


def test_names_and_metadata_that_are_damaged_together(tmp_path):
    """Parquet has the metadata twice. Arrow reads the schema's copy, where the key is damaged here, and a name is too."""
    path = tmp_path / "log.parquet"
    gd.Transitions(**GOOD, episodes=[0, 0, 1]).save(path)
    content = path.read_bytes()
    stored = content[content.index(b"ARROW:schema") :]
    stored = stored[stored.index(b"/////") :]
    stored = stored[: re.match(rb"[A-Za-z0-9+/=]+", stored).end()]  # pyright: ignore[reportOptionalMemberAccess]
    schema = base64.b64decode(stored)
    assert schema.count(b"gradientdice") == 1
    damaged = base64.b64encode(schema.replace(b"gradientdice", b"gradientdicf"))
    assert len(damaged) == len(stored)
    names, mark, rest = content.replace(stored, damaged).partition(b'{"rows"')
    path.write_bytes(names.replace(b"episodes", b"episodet") + mark + rest)
    for read in (gd.load, gd.scan):
        with pytest.raises(gd.InputError, match="has another name than was written"):
            read(path)
