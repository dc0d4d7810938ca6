"""Policies as the command line names them: files and modules that cannot be used are refused in a sentence."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.policies.specification import load_policy


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.npz"
    gd.Transitions([0, 1, 0], [0, 1, 1], [0.0, 1.0, 2.0], [1, 0, 1]).save(path)
    return path


def write_several(path):
    np.savez(path, first=np.ones((2, 1)), second=np.ones((2, 1)))


def write_cut(path):
    np.save(path, np.full((2, 2), 0.5))
    path.write_bytes(path.read_bytes()[:-5])


FILES = {
    "empty.csv": (lambda path: path.touch(), "is empty"),
    "blank.csv": (lambda path: path.write_text("\n\n"), "one row per state"),
    "words.csv": (lambda path: path.write_text("left,right\n0.5,0.5\n"), "not a table of numbers"),
    "ragged.csv": (lambda path: path.write_text("1,0\n1\n"), "not a table of numbers"),
    "words.npy": (lambda path: np.save(path, np.array([["a", "b"]])), "must hold numbers, not words"),
    "objects.npy": (lambda path: np.save(path, np.array([{}], dtype=object)), "not a table of numbers"),
    "cut.npy": (write_cut, "it is damaged"),
    "cube.npy": (lambda path: np.save(path, np.ones((2, 2, 2))), "one column per action"),
    "bytes.npz": (lambda path: path.write_bytes(b"PK\x03\x04 no"), "not a table of numbers"),
    "several.npz": (write_several, "has 2 arrays"),
    "folder.csv": (lambda path: path.mkdir(), "must be a .csv"),
    "missing.csv": (lambda path: None, "There is no file"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_no_table(tmp_path, log, name):
    write, words = FILES[name]
    write(tmp_path / name)
    with pytest.raises(gd.InputError, match=words):
        load_policy(str(tmp_path / name), log)


MODULES = {
    "exits": ("import sys; sys.exit(3)", "could not be imported"),
    "fails": ("1 / 0", "ZeroDivisionError"),
    "broken": ("def (", "SyntaxError"),
    "lacks": ("import a_module_that_is_not_there", "no module 'a_module_that_is_not_there'"),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_that_cannot_be_imported(tmp_path, log, monkeypatch, name):
    code, words = MODULES[name]
    (tmp_path / f"policy_that_{name}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(gd.InputError, match=words):
        load_policy(f"policy_that_{name}:policy", log)


def test_probabilities_for_each_row_are_told_from_a_table(tmp_path):
    states = np.random.default_rng(0).normal(size=(5, 2))
    gd.Transitions(states, [0, 1, 0, 1, 0], np.zeros(5), states).save(tmp_path / "log.npz")
    np.savetxt(tmp_path / "policy.csv", np.full((5, 2), 0.5), delimiter=",")
    with pytest.raises(gd.InputError, match="a row for each of the log's 5 transitions.*--policy columns"):
        load_policy(str(tmp_path / "policy.csv"), tmp_path / "log.npz")


def test_columns_without_the_next_ones(tmp_path):
    np.savez(tmp_path / "log.npz", initial_probabilities=np.full((2, 2), 0.5))
    with pytest.raises(gd.InputError, match="neither next_probabilities nor next_actions"):
        load_policy("columns", tmp_path / "log.npz")


def test_modules_may_hold_what_a_policy_is_made_of(tmp_path, log, monkeypatch):
    (tmp_path / "rules.py").write_text(
        "table = [[0.25, 0.75]]\ndef rule(states):\n    return states * 2.0\nnumber = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert isinstance(load_policy("rules:table", log), gd.TabularPolicy)
    assert isinstance(load_policy("rules:rule", log), gd.SamplingPolicy)
    with pytest.raises(gd.InputError, match="rules:number is no policy. No policy can be made of int"):
        load_policy("rules:number", log)
