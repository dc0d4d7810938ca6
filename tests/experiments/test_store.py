"""Folders of results that were damaged: named, and started anew by force."""

import json

import pandas as pd
import pytest

import gradientdice as gd
from gradientdice.experiments.store import MANIFEST, ResultStore

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
