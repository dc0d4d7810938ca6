"""`gradientdice rank` and `gradientdice select`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gradientdice.base.effort import Effort
from gradientdice.base.errors import InputError
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
    Report,
    one_or_several,
)
from gradientdice.cli.scanning import Checkpoint, Reading, Scan, Scheduler

if TYPE_CHECKING:
    from gradientdice.evaluation.estimate import Estimate
    from gradientdice.evaluation.ranking import Ranking
    from gradientdice.evaluation.select import Selection
    from gradientdice.log.scanning.log import ScannedLog
    from gradientdice.log.transitions import Transitions
    from gradientdice.policies import Policy

Policies = Annotated[
    list[str],
    typer.Option(
        "--policy", help="NAME=POLICY, once for each: module:name, a table as .csv, .npy or .npz, or 'columns'."
    ),
]
Baseline = Annotated[
    str, typer.Option("--baseline", help="What the policies are compared with: 'behavior', or the NAME of one.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 4 if a verdict is 'do not trust'.")]


def rank(
    log: Log,
    policy: Policies,
    discount: Discounts,
    baseline: Baseline = "behavior",
    column: Columns = None,
    confidence: Confidence = 0.95,
    effort: EffortOption = Effort.NORMAL,
    report: Report = None,
    json: Json = False,
    strict: Strict = False,
    force: Force = False,
    scan: Scan = False,
    scheduler: Scheduler = None,
    checkpoint: Checkpoint = None,
    episode_ends: EpisodeEnds = None,
    episodes: Episodes = None,
) -> None:
    """Several policies on one log: values, differences to a baseline, and which may be the best."""
    import gradientdice as gd

    if report is not None and len(discount) > 1:
        raise InputError("--report is for one discount: leave it out, or give --discount once.")
    _require_free(report, force=force)
    reading = Reading(log, column, scan, scheduler, checkpoint, episode_ends, episodes)
    options = {"baseline": baseline, "confidence": confidence, "effort": effort, "checkpoint": checkpoint}
    with reading.opened() as data:
        policies = _policies(policy, reading, data)
        found = gd.rank(data, policies, one_or_several(discount), **options)
    typer.echo(found.to_json() if json else str(found))
    if isinstance(found, gd.Ranking):
        _write(found, report, force=force)
    rankings = [found] if isinstance(found, gd.Ranking) else list(found.values())
    _exit([estimate for ranking in rankings for estimate in ranking.estimates.values()], strict=strict)


def select(
    log: Log,
    policy: Policies,
    discount: Discount,
    baseline: Baseline = "behavior",
    column: Columns = None,
    confidence: Confidence = 0.95,
    effort: EffortOption = Effort.NORMAL,
    report: Report = None,
    json: Json = False,
    strict: Strict = False,
    force: Force = False,
    scan: Scan = False,
    scheduler: Scheduler = None,
    checkpoint: Checkpoint = None,
    episode_ends: EpisodeEnds = None,
    episodes: Episodes = None,
) -> None:
    """The policy to deploy, or the baseline if none is shown to be better."""
    import gradientdice as gd

    _require_free(report, force=force)
    reading = Reading(log, column, scan, scheduler, checkpoint, episode_ends, episodes)
    options = {"baseline": baseline, "confidence": confidence, "effort": effort, "checkpoint": checkpoint}
    with reading.opened() as data:
        policies = _policies(policy, reading, data)
        found = gd.select(data, policies, discount, **options)
    typer.echo(found.to_json() if json else str(found))
    _write(found, report, force=force)
    _exit(found.ranking.estimates.values(), strict=strict)


def _require_free(report: Path | None, *, force: bool) -> None:
    """An error, before any work, if the report's file is there and may not be replaced."""
    from gradientdice.report.page import require_free

    if report is not None:
        require_free(report, force=force)


def _write(found: Ranking | Selection, report: Path | None, *, force: bool) -> None:
    if report is not None:
        found.report(report, force=force)
        typer.echo(f"Wrote {report}.", err=True)


def _policies(specifications: list[str], reading: Reading, data: Transitions | ScannedLog) -> dict[str, Policy]:
    """The values of --policy by name."""
    found = {}
    for specification in specifications:
        name, equals, source = specification.partition("=")
        if not (name and equals and source):
            raise InputError(f"--policy {specification}: write NAME=POLICY, for example --policy new=policy.csv.")
        if name in found:
            raise InputError(f"--policy {specification}: there are two policies of the name {name!r}.")
        found[name] = reading.policy(source, data)
    return found


def _exit(estimates: Iterable[Estimate], *, strict: bool) -> None:
    """Ends with an exit code that says whether all went well."""
    import gradientdice as gd

    every = list(estimates)
    if not all(estimate.status.ok for estimate in every):
        raise typer.Exit(FAILED)
    if strict and any(estimate.verdict is gd.Verdict.DO_NOT_TRUST for estimate in every):
        raise typer.Exit(NOT_TRUSTED)
