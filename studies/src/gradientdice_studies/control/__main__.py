"""Tries some tasks while a method is worked on.

`python -m gradientdice_studies.control [--rows N] [--logs N] [--method NAME]… WORD…` prints a line for each cell
of the tasks whose name or half is one of the words; without words, of those to develop on.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from gradientdice_studies.control.run import Cell, answers
from gradientdice_studies.control.summary import summarised
from gradientdice_studies.control.tasks import TASKS
from gradientdice_studies.frames import records

parser = argparse.ArgumentParser(description="Tries tasks of the control suite.")
parser.add_argument("words", nargs="*", default=["develop"])
parser.add_argument("--rows", type=int, default=10_000)
parser.add_argument("--logs", type=int, default=2)
parser.add_argument("--method", action="append")
parser.add_argument("--keep", type=Path, default=Path("results/control/logs"), help="where logs are kept")
arguments = parser.parse_args()
arguments.keep.mkdir(parents=True, exist_ok=True)
for name, make in TASKS.items():
    if name not in arguments.words and make().half not in arguments.words:
        continue
    rows = []
    for seed in range(arguments.logs):
        rows += answers(Cell(name, arguments.rows, seed), arguments.keep, arguments.method)
    for cell in records(summarised(pd.DataFrame(rows))):
        print(
            f"{name:24} {cell['discount']:<5g}{cell['method']:20} RMSE {cell['rmse']:.3f} of the gap, half-width "
            f"{cell['width']:.3f} ({cell['width_running']:.1f} × running), inside {cell['inside']} of "
            f"{cell['intervals']}, right {cell['right']}, wrong {cell['wrong']}, {cell['seconds']:.1f} s, "
            f"{cell['mebibytes']:.0f} MiB",
            flush=True,
        )
