"""Tries some families while they are worked on.

`python -m gradientdice_studies.traps [--logs N] WORD…` prints a line for each family whose
name, trap or half has one of the words in it.
"""

from __future__ import annotations

import argparse

from gradientdice_studies.traps.families import families
from gradientdice_studies.traps.run import run_part

parser = argparse.ArgumentParser(description="Tries families of logs.")
parser.add_argument("words", nargs="*")
parser.add_argument("--logs", type=int, default=100)
arguments = parser.parse_args()
for name, family in families().items():
    text = f"{name} {family.trap} {family.half}"
    if arguments.words and not any(word in text for word in arguments.words):
        continue
    rows = run_part(name, range(arguments.logs))
    counts = {verdict: [row for row in rows if row["verdict"] == verdict] for verdict in ("trust", "caution")}
    trusted = counts["trust"]
    inside = [bool(row["inside"]) for row in rows if row["inside"] is not None]
    print(
        f"{family.half:8} {family.trap:30.30} {name:45.45} trust {len(trusted) / len(rows):.2f}, of these inside "
        f"{sum(bool(row['inside']) for row in trusted) / max(len(trusted), 1):.2f}; caution "
        f"{len(counts['caution']) / len(rows):.2f}; all inside {sum(inside) / max(len(inside), 1):.2f}",
        flush=True,
    )
