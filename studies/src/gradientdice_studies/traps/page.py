"""The numbers of the results page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from gradientdice_studies.markdown import table
from gradientdice_studies.steps import Steps
from gradientdice_studies.traps.families import families
from gradientdice_studies.traps.family import Family
from gradientdice_studies.traps.figures import draw_all
from gradientdice_studies.traps.run import QUICK, Scale, run
from gradientdice_studies.traps.summary import Summary, before, summaries

HEADER = (
    "trap",
    "family",
    "states",
    "before: trust",
    "inside if trusted",
    "now: trust",
    "inside if trusted",
    "caution",
    "do not trust, refused",
    "all inside",
    "bar",
)


def context(frame: pd.DataFrame, scale: Scale) -> dict[str, Any]:
    """The values of the template's names."""
    now, old, known = summaries(frame), before(), families()
    traps = [family for family in known.values() if family.trap != "honest"]
    honest = [family for family in known.values() if family.trap == "honest"]
    values: dict[str, Any] = {
        "logs": scale.logs,
        "continuous_logs": scale.continuous_logs,
        "families": len(known),
        "traps": len({f.trap for f in traps}),
    }
    for kind, chosen in {"trap": traps, "honest": honest}.items():
        for half in ("develop", "report"):
            some = [family for family in chosen if family.half == half]
            values[f"{kind}_{half}"] = _table(some, now, old)
            values[f"{kind}_{half}_passed"] = sum(now[family.name].passes(family) for family in some)
            values[f"{kind}_{half}_count"] = len(some)
            values[f"{kind}_{half}_before"] = sum(old[family.name].passes(family) for family in some)
    values["missed"] = _missed(known.values(), now)
    return values


def _table(some: Iterable[Family], now: dict[str, Summary], old: dict[str, Summary]) -> str:
    rows = []
    for family in some:
        new, past = now[family.name], old[family.name]
        rows.append(
            [
                family.trap,
                family.name,
                family.states,
                _share(past.trust),
                _share(past.covered),
                _share(new.trust),
                _share(new.covered),
                _share(new.caution),
                _share(new.rejected),
                _share(new.inside),
                "yes" if new.passes(family) else "**no**",
            ]
        )
    return table(HEADER, rows)


def _missed(known: Iterable[Family], now: dict[str, Summary]) -> str:
    missed = [family for family in known if not now[family.name].passes(family)]
    return "; ".join(f"{family.name} ({_reason(family, now[family.name])})" for family in missed) or "none"


def _reason(family: Family, summary: Summary) -> str:
    return f"{family.half} half, trust {_share(summary.trust)}, of these inside {_share(summary.covered)}"


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.2f}"


STEPS = Steps(full=Scale(), quick=QUICK, run=run, context=context, draw=draw_all)
