"""Networks of a learned model on several devices, as many on each."""

import os
import subprocess
import sys

import pytest

CODE = """
import jax, numpy as np
import gradientdice as gd
from gradientdice.base.effort import Effort
from gradientdice.default.model import learning
from gradientdice.default.model.encoding import Encoding
from gradientdice.default.model.settings import SETTINGS
from dataclasses import replace

assert len(jax.devices()) == 4
rng = np.random.default_rng(0)
states = rng.normal(size=(300, 2))
data = gd.Transitions(states, rng.integers(0, 2, 300), states[:, 0], 0.9 * states, initial_states=states[:9])
policy = gd.DiscretePolicy(lambda s: np.full((len(s), 2), 0.5), 2)
problem = gd.Problem(data, policy)
settings = replace(SETTINGS[Effort.QUICK], steps=40, width=16)
places = []
def noted(tree):
    found = spread(tree)
    places.append(len(jax.tree.leaves(found)[0].sharding.device_set))
    return found
spread, learning.shared_evenly = learning.shared_evenly, noted
shared = learning.learn_dynamics(problem, Encoding.of(data, policy), problem.folds(2), settings)
learning.shared_evenly = lambda tree: tree
alone = learning.learn_dynamics(problem, Encoding.of(data, policy), problem.folds(2), settings)
assert places == [4], places
for one, other in zip(jax.tree.leaves(shared.networks), jax.tree.leaves(alone.networks)):
    np.testing.assert_allclose(one, other, atol=1e-5)
print("same")
"""


@pytest.mark.slow
def test_four_devices_learn_what_one_does():
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env={
            **os.environ,
            "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0 and done.stdout == "same\n", done.stderr
