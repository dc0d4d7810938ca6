"""Memory and time of the kernel methods on 10⁵ rows, each in a process of its own: none makes a matrix of n × n.

`python benchmarks/kernel_memory.py`; the log is CartPole's (four numbers a state, two actions).
"""

from __future__ import annotations

import json
import subprocess
import sys

ROWS = 100_000
METHODS = {
    "MWL": "gd.MWL(0.95, discriminator=gd.RandomFourier(500))",
    "MQL": "gd.MQL(0.95, discriminator=gd.RandomFourier(500))",
    "BCH": "gd.BCH(1.0, tests=gd.RandomFourier(500))",
    "black box, a weight a row": "gd.BlackBox(1.0, row_weights=True)",
    "LSTDQ": "gd.LSTDQ(0.95)",
}

WORK = """
import json, sys, time
import numpy as np, gradientdice as gd
from gradientdice_studies.shootout.control import CONTROL
problem = CONTROL["cart-pole"]()
data = problem.log(int(sys.argv[1]), 0.0, np.random.default_rng(0))
started = time.perf_counter()
gd.evaluate(data, problem.policy, eval(sys.argv[2]), functions=gd.RandomFourier(400))
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([time.perf_counter() - started, int(peak.split()[1]) / 1024**2]))
"""


def main() -> None:
    print("| method, 400 features an action | seconds | GiB at most, the process's own included |")
    print("|---|---|---|")
    for name, text in METHODS.items():
        done = subprocess.run([sys.executable, "-c", WORK, str(ROWS), text], check=True, capture_output=True, text=True)
        spent, peak = json.loads(done.stdout)
        print(f"| {name} | {spent:.0f} | {peak:.1f} |", flush=True)


if __name__ == "__main__":
    main()
