"""Folders of results that were damaged: named, and started anew by force."""

import json

import pandas as pd
import pytest

import gradientdice as gd
from gradientdice_studies.store import MANIFEST, ResultStore

SETTINGS = {"rows": 3}


@pytest.fixture
def folder(tmp_path):
    store = ResultStore(tmp_path / "out", "small", SETTINGS)
    store.write(store.part("one.json"), lambda path: path.write_text(json.dumps([1, 2, 3])))
    store.write(store.part("two.parquet"), pd.DataFrame({"a": [1, 2]}).to_parquet)
    return tmp_path / "out"


@pytest.mark.parametrize("name", ["one.json", "two.parquet"])
def test_a_part_that_was_cut_is_named(folder, name):
    part = folder / "parts" / name
    part.write_bytes(part.read_bytes()[:-3])
    with pytest.raises(gd.InputError, match=f"{name} is damaged. Delete it, or give --force"):
        ResultStore(folder, "small", SETTINGS)
    assert not ResultStore(folder, "small", SETTINGS, force=True).part(name).exists()


@pytest.mark.parametrize("name", ["one.json", "two.parquet", "two.parquet.sha256"])
def test_a_part_with_one_flipped_bit_is_named(folder, name):
    ResultStore(folder, "small", SETTINGS)
    part = folder / "parts" / name
    content = part.read_bytes()
    for bit in range(0, 8 * len(content), 97):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        part.write_bytes(damaged)
        with pytest.raises(gd.InputError, match=f"{name.removesuffix('.sha256')} is damaged"):
            ResultStore(folder, "small", SETTINGS)
    part.write_bytes(content)
    assert ResultStore(folder, "small", SETTINGS).part("one.json").exists()


def test_a_part_has_its_checksum_before_its_name(folder, monkeypatch):
    store = ResultStore(folder, "small", SETTINGS)
    monkeypatch.setattr("gradientdice.base.atomic.os.replace", lambda *given: named.append(given[1].name))
    named: list[str] = []
    store.write(store.part("three.json"), lambda path: path.write_text("3"))
    assert named == ["three.json.sha256", "three.json"]


def test_what_a_killed_process_left_is_no_part(folder):
    (folder / "parts" / ".0123456789abcdef.json").write_text("[1, 2")
    assert ResultStore(folder, "small", SETTINGS).part("one.json").exists()


def test_parts_of_an_earlier_version_have_no_checksum(folder):
    for path in (folder / "parts").glob("*.sha256"):
        path.unlink()
    assert ResultStore(folder, "small", SETTINGS).part("one.json").exists()


@pytest.mark.parametrize("content", ["", "{", "[]", "3", "\0\0"])
def test_a_manifest_that_is_none(folder, content):
    (folder / MANIFEST).write_text(content)
    with pytest.raises(gd.InputError, match="manifest.json is damaged. Choose another folder, or give --force"):
        ResultStore(folder, "small", SETTINGS)
    store = ResultStore(folder, "small", SETTINGS, force=True)
    assert not store.part("one.json").exists(), "nobody knows what its parts belong to"


def test_a_manifest_of_something_else(folder):
    (folder / MANIFEST).write_text('{"name": "a web application"}')
    with pytest.raises(gd.InputError, match="--force to replace"):
        ResultStore(folder, "small", SETTINGS)


def test_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(gd.InputError, match="could not be made"):
        ResultStore(tmp_path / "out", "small", SETTINGS)
    assert (tmp_path / "out").read_text() == "mine"
