"""Both workers of the tests, their child processes and later runs share what JAX compiled."""

import os
from importlib.metadata import version
from pathlib import Path

CACHE = Path(__file__).parents[1] / ".pytest_cache" / "jax"
SETTINGS = {
    "JAX_COMPILATION_CACHE_DIR": str(CACHE),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}

# Compiles a quarter faster, to programs that are a little slower. XLA ends the process if it does not know an option:
# only with versions that this was tried with.
if version("jaxlib").startswith("0.10."):
    SETTINGS["XLA_FLAGS"] = "--xla_cpu_use_fusion_emitters=false"

# JAX reads them when it is imported, which nothing has done yet.
for name, value in SETTINGS.items():
    os.environ.setdefault(name, value)
