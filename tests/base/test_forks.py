"""After a fork JAX would hang: the child says so."""

import subprocess
import sys

CODE = """
import os, sys, warnings
import numpy as np
import gradientdice as gd
warnings.simplefilter("ignore")
data = gd.Transitions([0, 1, 0, 1], [0, 1, 1, 0], [0.0, 1.0, 2.0, 0.0], [1, 0, 1, 0], [0, 1])
policy = gd.TabularPolicy(np.full((2, 2), 0.5))
def train():
    return gd.evaluate(data, policy, gd.GradientDICE(0.5), solver=gd.PrimalDual(4, 0.01)).value
if {before}:
    train()
child = os.fork()
if child == 0:
    try:
        train()
    except gd.InputError as error:
        print(error)
        sys.stdout.flush()
    os._exit(0)
os.waitpid(child, 0)
"""


def test_a_fork_after_jax_has_run_is_told_what_to_do():
    done = subprocess.run([sys.executable, "-c", CODE.format(before=True)], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and "spawn" in done.stdout, done


def test_a_fork_before_jax_has_run_works():
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(before=False)], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0 and done.stdout == "", done
