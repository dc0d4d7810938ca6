"""Where closed forms are computed: the rule, and the word that overrules it."""

import jax
import numpy as np
import pytest

import gradientdice as gd
from gradientdice.base import accelerator
from gradientdice.base.accelerator import LEAST_WORK, LEAST_WORK_WARM, closed_form_devices, double_precision

LARGE = 10 * LEAST_WORK


@pytest.fixture(autouse=True)
def cold(monkeypatch):
    monkeypatch.setattr(accelerator, "_found", [])
    monkeypatch.delenv(accelerator.VARIABLE, raising=False)


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(accelerator, "_has_plugin", lambda: True)


def test_without_a_gpu_numpy_computes(monkeypatch):
    assert closed_form_devices(LARGE) is None
    monkeypatch.setattr(accelerator, "_has_plugin", lambda: True)
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    assert closed_form_devices(LARGE) is None


def test_a_gpu_is_used_for_what_is_worth_its_start_and_then_for_less(gpu):
    assert closed_form_devices(LEAST_WORK / 2) is None
    assert closed_form_devices(LARGE) is not None
    assert closed_form_devices(LEAST_WORK / 2) is not None
    assert closed_form_devices(LEAST_WORK_WARM / 2) is None


def test_what_does_not_fit_into_its_memory_stays_here(gpu, monkeypatch):
    monkeypatch.setattr(accelerator.Devices, "memory", 1e9)
    assert closed_form_devices(LARGE, size=2e9) is None
    assert closed_form_devices(LARGE, size=5e8) is not None


def test_a_word_in_the_environment_overrules(gpu, monkeypatch):
    monkeypatch.setenv(accelerator.VARIABLE, "cpu")
    assert closed_form_devices(LARGE) is None
    monkeypatch.setenv(accelerator.VARIABLE, "device")
    assert closed_form_devices(1.0) is not None


def test_another_word_is_refused(monkeypatch):
    monkeypatch.setenv(accelerator.VARIABLE, "gpu")
    with pytest.raises(gd.InputError, match="GRADIENTDICE_CLOSED_FORM must be one of auto, cpu, device, not 'gpu'"):
        closed_form_devices(LARGE)


def test_double_precision_ends_with_its_block():
    with double_precision():
        assert jax.numpy.asarray(np.ones(1)).dtype == np.float64
    assert jax.numpy.asarray(np.ones(1)).dtype == np.float32
