"""`gradientdice evaluate` and `gradientdice compare`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from gradientdice.base.effort import Effort
from gradientdice.cli.options import (
    FAILED,
    NOT_TRUSTED,
    Columns,
    Confidence,
    Discount,
    Discounts,
    EffortOption,
    EpisodeEnds,
    Episodes,
    Force,
    Json,
    Log,
    PolicyOption,
    Report,
    one_or_several,
)
from gradientdice.cli.scanning import Checkpoint, Reading, Scan, Scheduler


class Interval(StrEnum):
    """The names of the interval methods."""

    skew = "skew"
    normal = "normal"
    bootstrap = "bootstrap"
    likelihood = "likelihood"


def evaluate(
    log: Log,
    policy: PolicyOption,
    discount: Discounts,
    column: Columns = None,
    confidence: Confidence = 0.95,
    interval: Annotated[Interval, typer.Option("--interval", help="How the interval is made.")] = Interval.skew,
    effort: EffortOption = Effort.NORMAL,
    report: Report = None,
    json: Json = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 4 if the verdict is 'do not trust'.")] = False,
    force: Force = False,
    scan: Scan = False,
    scheduler: Scheduler = None,
    checkpoint: Checkpoint = None,
    episode_ends: EpisodeEnds = None,
    episodes: Episodes = None,
) -> None:
    """The value of a policy from a log, with an interval and a verdict; a curve over several discounts."""
    import gradientdice as gd
    from gradientdice.default.search import Searching
    from gradientdice.evaluation.compare import compare_problem
    from gradientdice.evaluation.curve import DiscountCurve, require_discounts
    from gradientdice.evaluation.evaluate import evaluate_discounts
    from gradientdice.evaluation.interval import Intervals
    from gradientdice.evaluation.registry import compared
    from gradientdice.report.page import require_free
    from gradientdice.statistics.intervals import require_confidence

    methods = {
        Interval.skew: gd.SkewInterval,
        Interval.normal: gd.NormalInterval,
        Interval.bootstrap: gd.BootstrapInterval,
        Interval.likelihood: gd.EmpiricalLikelihood,
    }
    discounts = require_discounts(discount)
    if report is not None:
        require_free(report, force=force)
    reading = Reading(log, column, scan, scheduler, checkpoint, episode_ends, episodes)
    intervals = Intervals(methods[interval](), require_confidence(confidence))
    problem = None
    with reading.opened() as data:
        target = reading.policy(policy, data)
        if isinstance(data, gd.ScannedLog):
            options = {"interval": intervals.method, "confidence": confidence, "effort": effort}
            found = gd.evaluate(data, target, discount=one_or_several(discounts), checkpoint=checkpoint, **options)
        else:
            # One problem for both: the search and the moments are shared with the comparison.
            problem = gd.Problem(data, target, search=Searching(discounts[0]), effort=effort)
            every = evaluate_discounts(problem, discounts, intervals)
            found = every[0] if len(every) == 1 else DiscountCurve(tuple(every))
    estimates = list(found) if isinstance(found, DiscountCurve) else [found]
    if isinstance(found, gd.Estimate):
        _ = found.improvement  # the text shows it where it is known
    typer.echo(found.to_json() if json else str(found))
    if report is not None:
        if isinstance(found, DiscountCurve):
            found.report(report, force=force)
        else:
            # A comparison would read a scanned log again.
            comparison = None
            if problem is not None:
                comparison = compare_problem(problem, compared(discounts[0]), Intervals(confidence=confidence))
            found.report(report, comparison=comparison, force=force)
        typer.echo(f"Wrote {report}.", err=True)
    if not all(estimate.status.ok for estimate in estimates):
        raise typer.Exit(FAILED)
    if strict and any(estimate.verdict is gd.Verdict.DO_NOT_TRUST for estimate in estimates):
        raise typer.Exit(NOT_TRUSTED)


def compare(
    log: Log,
    policy: PolicyOption,
    discount: Discount,
    column: Columns = None,
    confidence: Confidence = 0.95,
    effort: EffortOption = Effort.NORMAL,
    json: Json = False,
    scan: Scan = False,
    scheduler: Scheduler = None,
    checkpoint: Checkpoint = None,
    episode_ends: EpisodeEnds = None,
    episodes: Episodes = None,
) -> None:
    """Every estimator on one log, side by side, ranked by held-out Bellman loss and precision."""
    import gradientdice as gd
    from gradientdice.evaluation.registry import compared

    reading = Reading(log, column, scan, scheduler, checkpoint, episode_ends, episodes)
    with reading.opened() as data:
        options = {"confidence": confidence, "effort": effort, "checkpoint": checkpoint}
        table = gd.compare(data, reading.policy(policy, data), compared(discount), **options)
    if json:
        typer.echo(table.to_json(orient="records", indent=2))
        return
    for row in table.to_dict("records"):
        typer.echo(_as_text({str(name): value for name, value in row.items()}))


def _as_text(row: dict[str, Any]) -> str:
    mark = "  ← use this" if row["choice"] else ""
    known = row["low"] is not None and row["low"] == row["low"]  # pandas makes None a NaN beside numbers
    interval = f"[{row['low']:.6g}, {row['high']:.6g}]" if known else "(no interval)"
    figures = row["note"] or f"{row['value']:.6g}  {interval}  {row['verdict']}"
    remarks = f"\n    ({row['remarks']})" if row["remarks"] else ""
    return f"{row['estimator']}{mark}\n    {figures.rstrip()}{remarks}"
