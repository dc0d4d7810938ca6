"""An answer on a table needs NumPy and SciPy: it imports nothing that other answers alone need."""

import subprocess
import sys

CODE = """
import sys
import numpy as np
import gradientdice as gd

mdp = gd.mdp.boyan_chain("continuing")
data = mdp.sample(5000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
print(gd.evaluate(data, gd.TabularPolicy(np.tile([0.1, 0.9], (13, 1))), discount=1.0).verdict)
heavy = ("jax", "equinox", "optax", "pandas", "matplotlib", "pyarrow", "jinja2", "typer", "rich", "gradientdice_studies")
own = [name for name in sys.modules if name.startswith("gradientdice.")]
rooms = (".scan.", ".stochastic", ".report", ".cli", ".default.model.values", ".recording", ".formats.load")
print([name for name in heavy if name in sys.modules], [name for name in own if any(room in name for room in rooms)])
print(len(own))
"""


def test_a_table_is_answered_without_what_it_does_not_need():
    found = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True).stdout.split("\n")
    assert found[0] == "trust" and found[1] == "[] []"
    assert int(found[2]) <= 155
