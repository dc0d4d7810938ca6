"""`gradientdice doctor` says what is installed, and never fails."""

import importlib.metadata
import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import gradientdice as gd
from gradientdice.cli.doctor import examine
from gradientdice.cli.main import app

REQUIRED = [
    "numpy>=2.1",
    "jax>=0.8.0",
    "nowhere-to-be-found",
    'gymnasium[mujoco]>=1.0; extra == "gym"',
    "pytest>=8 ; extra == 'dev' and python_version >= '3.11'",
    'also_not-there; extra == "gym"',
]


@pytest.fixture
def required(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: REQUIRED)


def test_versions_are_those_that_are_imported(required):
    found = examine()
    assert found["packages"]["numpy"] == np.__version__
    assert found["packages"]["nowhere-to-be-found"] is None
    assert list(found["packages"]) == ["gradientdice", "numpy", "jax", "nowhere-to-be-found", "jaxlib"]
    assert found["extras"]["dev"] == {"pytest": pytest.__version__}
    assert found["extras"]["gym"]["also_not-there"] is None


def test_the_text_names_what_is_missing(required, monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    text = CliRunner().invoke(app, ["doctor"]).output
    lines = dict(line.split("  ", 1) for line in text.splitlines())
    assert lines["nowhere-to-be-found"].strip() == "missing"
    assert lines["[dev]"].strip() == "complete" and "also_not-there" in lines["[gym]"]
    assert lines["JAX_PLATFORMS"].strip() == "cpu" and lines["devices"].strip().startswith("cpu: ")


def test_the_real_requirements_are_read():
    found = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).output)
    assert {"numpy", "scipy", "jax"} <= set(found["packages"]) and "gym" in found["extras"]
    assert found["packages"]["gradientdice"] == gd.__version__


def test_jax_that_cannot_be_imported_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 0 and "none (ModuleNotFoundError" in done.output


def test_a_driver_that_fails_is_reported(monkeypatch):
    import jax

    def broken():
        raise RuntimeError("no driver\nfor this device")

    monkeypatch.setattr(jax, "devices", broken)
    assert examine()["devices"] == ["none (RuntimeError: no driver for this device)"]


def test_a_source_tree_that_is_not_installed(monkeypatch):
    def not_installed(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", not_installed)
    found = examine()
    assert list(found["packages"]) == ["gradientdice", "jaxlib"] and found["extras"] == {}
