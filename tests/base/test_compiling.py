"""Programs for a GPU, tried on the processor: they compute the same, and small work is sent where it is done sooner."""

import jax
import jax.numpy as jnp
import pytest

from gradientdice.base import compiling
from gradientdice.base.compiling import CPU_OPTIONS, GPU_OPTIONS, on_processor, quick_options, quickly_compiled


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    compiling._known_options.cache_clear()
    yield
    compiling._known_options.cache_clear()


def test_the_options_are_known_and_change_no_result(gpu):
    @quickly_compiled(static_argnames="times")
    def scaled(numbers, times):
        return numbers * times

    assert compiling._known_options()
    assert scaled(jnp.arange(3.0), times=2).tolist() == [0.0, 2.0, 4.0]


def test_without_the_options_it_compiles_as_usual(gpu, monkeypatch):
    monkeypatch.setattr(compiling, "GPU_OPTIONS", {"xla_no_such_option": 0})

    @quickly_compiled()
    def doubled(number):
        return 2 * number

    assert not compiling._known_options()
    assert doubled(3.0) == 6.0


def test_options_are_those_of_the_default_device(monkeypatch):
    assert quick_options() is CPU_OPTIONS
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert quick_options() is GPU_OPTIONS
    monkeypatch.setattr(compiling, "_known_options", lambda: False)
    assert quick_options() is None


def test_small_work_goes_to_a_processor_with_many_cores(gpu, monkeypatch):
    def place() -> object:
        return getattr(jax.config, "jax_default_device")  # noqa: B009 (unknown to its type stub)

    with on_processor():
        assert place() == jax.local_devices(backend="cpu")[0]
    assert place() is None
    with on_processor(wanted=False):
        assert place() is None
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    with on_processor():
        assert place() is None
