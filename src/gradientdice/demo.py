"""The bundled log: three unrecorded policies ran forty machines; how well would a fourth do?

`python -m gradientdice.demo` evaluates it and shows the truth beside it; --write makes the log again.
"""

from __future__ import annotations

import argparse
import sys
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

import gradientdice as gd
from gradientdice.mdp import machine_maintenance, threshold_policy

DISCOUNT = 0.95
LOG, POLICY = "maintenance.parquet", "maintenance_policy.csv"
TARGET = threshold_policy(service_from=3, replace_from=8, slack=0.0)
ACTIONS = ("run", "service", "replace")
# A state's number is condition * 2 + demand.
STATES = tuple(f"condition {condition}, {demand} demand" for condition in range(10) for demand in ("low", "high"))


def make_log(seed: int = 20200713) -> gd.Transitions:
    """Forty machines, 250 steps each, run by three crews; rewards with noise of standard deviation 1."""
    rng = np.random.default_rng(seed)
    mdp = machine_maintenance()
    crews = [threshold_policy(9, 10, 0.3), threshold_policy(6, 9, 0.2), threshold_policy(2, 7, 0.3)]
    parts = [mdp.rollout(crews[k % 3], episodes=1, horizon=250, rng=rng) for k in range(40)]
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("states", "actions", "next_states", "truncated")
    }
    rewards = np.concatenate([part.rewards for part in parts])
    rewards = np.round(rewards + rng.normal(size=len(rewards)), 2)
    episodes = np.repeat(np.arange(40), 250)
    return gd.Transitions(**columns, rewards=rewards, episodes=episodes, action_names=ACTIONS, state_names=STATES)


def truth(discount: float = DISCOUNT) -> float:
    """The target's exact value."""
    return machine_maintenance().value(TARGET, discount)


def write(folder: Path) -> None:
    """Makes the bundled files again."""
    make_log().save(folder / LOG)
    header = f"probability of {', '.join(ACTIONS)}; one row per state (condition * 2 + demand)"
    np.savetxt(folder / POLICY, TARGET, delimiter=",", fmt="%g", header=header)


def main() -> None:
    """Evaluates the bundled log and writes the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="make the bundled files again in this folder, and stop")
    parser.add_argument("--output", type=Path, default=Path("demo-output"), help="folder for the report")
    arguments = parser.parse_args()
    if arguments.write:
        write(arguments.write)
        return
    bundled = files("gradientdice").joinpath("data")
    with as_file(bundled) as folder:
        data = gd.load(folder / LOG)
        policy = gd.TabularPolicy(np.loadtxt(folder / POLICY, delimiter=","))
        print(f"A log of {len(data):,} machine-hours: 40 machines, run by three crews with unrecorded policies.")
        print("How well would this rule do: service from condition 3 on, replace from condition 8 on?\n")
        estimate = gd.evaluate(data, policy, discount=DISCOUNT)
        print(estimate)
        print(f"\n{'the truth, known here':<23} {truth():.6g}")
        arguments.output.mkdir(parents=True, exist_ok=True)
        report = arguments.output / "report.html"
        estimators = [gd.GradientDICE(DISCOUNT), gd.DualDICE(DISCOUNT, power=2.0), gd.GenDICE(DISCOUNT)]
        estimate.report(report, comparison=gd.compare(data, policy, estimators), force=True)
        print(f"\nThe report is in {report}. The same from the command line:\n")
        files_and_policy = f"{_short(folder / LOG)} --policy {_short(folder / POLICY)}"
        program = Path(sys.executable).with_name("gradientdice")
        shown = _short(program) if program.exists() else "gradientdice"
        print(f"  {shown} evaluate {files_and_policy} --discount {DISCOUNT:g} --report report.html")


def _short(path: Path) -> Path:
    """Relative to the current folder, if it is inside it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


if __name__ == "__main__":
    main()
