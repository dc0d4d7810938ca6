"""Ways of writing a log, good and damaged, each with what an expert would accept as its outcome.

`WAYS` is the grid: every way is written for every domain that it fits.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from gradientdice_studies.files.domains import Domain, Log
from gradientdice_studies.files.exports import Export, Style, export, redrawn, returns_codes, returns_words

RIGHT, MISS, REFUSED, NOT_TRUSTED = "right", "miss", "refused", "not trusted"
ONLY_RIGHT, ONLY_REFUSED = frozenset({RIGHT}), frozenset({REFUSED})
RIGHT_OR_REFUSED, WARNED = frozenset({RIGHT, REFUSED}), frozenset({REFUSED, NOT_TRUSTED})
NOT_WRONG = frozenset({RIGHT, REFUSED, NOT_TRUSTED})
FORMATS = ("file", "frame", "scan")
# No log has so large a code.
UNKNOWN_CODE = 7


def _said(found: Export, **options: Any) -> Export:
    """With more said about it; `columns` are added to those that were said."""
    columns = found.options["columns"] | options.pop("columns", {})
    return replace(found, options={**found.options, **options, "columns": columns})


def _shuffled(found: Export) -> Export:
    return replace(found, frame=found.frame.sample(frac=1, random_state=5).reset_index(drop=True))


# --- The order of rows ---------------------------------------------------------------------------------------------


def _dates(log: Log, per_day: int = 1) -> np.ndarray:
    days = np.datetime64("2024-01-01") + log.episode % 90 + log.step // per_day
    return days.astype(str).astype(object)


def _moments(log: Log, zones: tuple[int, ...]) -> list[datetime.datetime]:
    """A row every half hour; each in one of the time zones, by its place in the episode."""
    first, found = datetime.datetime(2024, 3, 1, 20, tzinfo=datetime.UTC), []
    for episode, step in zip(log.episode.tolist(), log.step.tolist(), strict=True):
        zone = datetime.timezone(datetime.timedelta(hours=zones[step % len(zones)]))
        found.append((first + datetime.timedelta(days=episode % 90, minutes=30 * step)).astimezone(zone))
    return found


def _dated(domain: Domain, scan: bool, name: str = "date", said: bool = True, **options: Any) -> Export:
    """Shuffled rows with a column of dates."""
    found = export(domain, scan, order=name, **options)
    found.frame[name] = _dates(domain.log())
    return _shuffled(_said(found, columns={"steps": name}) if said else found)


def _zoned(domain: Domain, scan: bool) -> Export:
    found = export(domain, scan, order="timestamp")
    found.frame["timestamp"] = pd.Series(_moments(domain.log(), (1,)))
    return _shuffled(found)


def _two_zones(domain: Domain, scan: bool) -> Export:
    found = export(domain, scan, order="timestamp")
    found.frame["timestamp"] = [moment.isoformat() for moment in _moments(domain.log(), (1, -5))]
    return _shuffled(_said(found, columns={"steps": "timestamp"}))


def _text_steps(domain: Domain, scan: bool) -> Export:
    found = export(domain, scan)
    found.frame["step"] = found.frame["step"].astype(str)
    return _shuffled(found)


def _rows_in_order(domain: Domain, scan: bool) -> Export:
    return export(domain, scan, order=None)


def _shuffled_rows(domain: Domain, scan: bool) -> Export:
    return _shuffled(export(domain, scan, order=None))


def _sorted_by_state(domain: Domain, scan: bool) -> Export:
    found = _ends_said(domain, scan, "truncated" if domain.name == "machine" else "terminated")
    keys = [found.options["columns"]["episodes"], domain.columns["states"][0]]
    return replace(found, frame=found.frame.drop(columns="step").sort_values(keys, ignore_index=True))


def _equal_dates(domain: Domain, scan: bool) -> Export:
    found = export(domain, scan, order="date")
    found.frame["date"] = _dates(domain.log(), per_day=2)
    return _shuffled(_said(found, columns={"steps": "date"}))


def _missing_date(domain: Domain, scan: bool) -> Export:
    found = _dated(domain, scan)
    found.frame.loc[100, "date"] = None
    return found


# --- The ends of episodes ------------------------------------------------------------------------------------------


def _some_ends(domain: Domain, scan: bool) -> Export:
    """Only the bad ends are marked; time limits neither."""
    log = domain.log()
    return export(domain, scan, log=replace(log, ended=log.after == domain.bad_end, cut=np.zeros_like(log.cut)))


def _never_set(domain: Domain, scan: bool) -> Export:
    log = domain.log()
    return export(domain, scan, log=replace(log, ended=np.zeros_like(log.ended)))


def _ends_said(domain: Domain, scan: bool, which: str) -> Export:
    return _said(export(domain, scan, ends=False), episode_ends=which)


def _breakdowns(domain: Domain, scan: bool) -> Export:
    found = export(domain, scan)
    del found.options["columns"]["truncated"]
    return _said(replace(found, frame=found.frame.drop(columns="stopped")), episode_ends="truncated")


def _cut_early(domain: Domain, scan: bool) -> Export:
    return export(domain, scan, log=domain.log(30 if domain.name == "machine" else 8))


def _after_the_end(domain: Domain, scan: bool) -> Export:
    """In a tenth of the episodes the rows of another episode follow the end."""
    log, tenth = domain.log(), domain.episodes // 10
    joined = (log.episode < 2 * tenth) & (log.episode % 2 == 1)
    lengths = np.bincount(log.episode)
    episode = np.where(joined, log.episode - 1, log.episode)
    step = np.where(joined, log.step + lengths[np.maximum(log.episode - 1, 0)], log.step)
    return export(domain, scan, log=replace(log, episode=episode, step=step))


# --- Codes ---------------------------------------------------------------------------------------------------------


def _text_states(domain: Domain, scan: bool) -> Export:
    words = domain.states.dtype.kind == "U"
    return export(domain, scan, states=(np.arange(1, 7)[:, None] if words else domain.states).astype(str))


def _rule(domain: Domain, scan: bool, style: Style, actions: str | None = None, valued: bool = True) -> Export:
    return replace(export(domain, scan, actions=actions, style=style), valued=valued)


# --- Damage --------------------------------------------------------------------------------------------------------


def _spoilt(domain: Domain, scan: bool, field: str, cell: str, **options: Any) -> Export:
    """One cell of a field's first column holds a text."""
    found = export(domain, scan, **options)
    said = found.options["columns"][field]
    name = said if isinstance(said, str) else said[0]
    if isinstance(found.frame[name].iloc[0], np.ndarray):  # a list for a scan
        found.frame[name] = [[str(part) for part in row] for row in found.frame[name]]
        found.frame[name].iloc[100][0] = cell
    else:
        found.frame[name] = found.frame[name].astype(str).astype(object)
        found.frame.loc[100, name] = cell
    return found


def _two_files(domain: Domain, scan: bool, said: str | None = None) -> Export:
    """Two files that both number their episodes from 0; without a column of steps."""
    found, name = export(domain, scan, order=None), domain.columns["episodes"][0]
    half = domain.episodes // 2
    first, second = found.frame[found.frame[name] < half], found.frame[found.frame[name] >= half]
    files = (first, second.assign(**{name: second[name] - half}))
    found = replace(found, frame=pd.concat(files, ignore_index=True), files=files)
    return found if said is None else _said(found, episodes=said)


def _part_files(domain: Domain, scan: bool) -> Export:
    """One log in two files, with an episode that begins in the first and goes on in the second."""
    found = export(domain, scan)
    middle = int(np.flatnonzero((domain.log().step == 2) & (domain.log().episode == domain.episodes // 2))[0])
    files = (found.frame.iloc[:middle], found.frame.iloc[middle:])
    return _said(replace(found, files=files), episodes="across files")


def _random_policy(domain: Domain, scan: bool) -> Export:
    mean = np.full(domain.behavior.shape, 1 / len(domain.actions))
    return replace(export(domain, scan, style=redrawn), mean=mean)


@dataclass(frozen=True, eq=False)
class Way:
    """One way of writing a log.

    Attributes:
        name: in the table.
        group: what it is about.
        tried: the same in a phrase, for the page.
        make: (domain, whether it is for a scan) -> export.
        accepts: the outcomes of `evaluate` that an expert would accept.
        scanned: those that he would accept of a scan; None where a scan does not apply.
        formats: the formats that it can be written in.
        domains: the domains that it fits; none named is all.
        knowable: whether any reader of the file could know that something is wrong.
    """

    name: str
    group: str
    tried: str
    make: Callable[[Domain, bool], Export]
    accepts: frozenset[str]
    scanned: frozenset[str] | None = None
    formats: tuple[str, ...] = FORMATS
    domains: tuple[str, ...] = ()
    knowable: bool = field(default=True)


ENDING, NUMBERED = ("hospital", "shop", "calls"), ("hospital", "calls", "machine")
WAYS = (
    Way("plain", "ends", "steps, ends and time limits have columns", export, ONLY_RIGHT, ONLY_RIGHT),
    Way("dates", "order", "shuffled rows, ISO dates in a column `date`", partial(_dated, said=False), RIGHT_OR_REFUSED),
    Way("time zone", "order", "shuffled rows, times with a zone in a column `timestamp`", _zoned, RIGHT_OR_REFUSED),
    Way("named dates", "order", "shuffled rows, `columns={'steps': 'day'}`", partial(_dated, name="day"), ONLY_RIGHT),
    Way("text steps", "order", "shuffled rows, steps written as text", _text_steps, ONLY_RIGHT),
    Way("rows in order", "order", "no column of order, rows in order", _rows_in_order, ONLY_RIGHT),
    Way("shuffled", "order", "no column of order, shuffled rows, ends marked", _shuffled_rows, WARNED),
    Way(
        "sorted by state", "order", "no column of order, rows sorted by state, ends not marked but said",
        _sorted_by_state, NOT_WRONG, knowable=False,
    ),
    Way(
        "dated, next states", "order", "shuffled rows with next states, `columns={'steps': 'date'}`",
        partial(_dated, following=True), RIGHT_OR_REFUSED, RIGHT_OR_REFUSED,
    ),
    Way("no ends", "ends", "no column of ends, many lengths", partial(export, ends=False), WARNED),
    Way("some ends", "ends", "only deaths or other bad ends are marked", _some_ends, NOT_WRONG),
    Way("ends never set", "ends", "a column of ends that is 0 in the last rows too", _never_set, WARNED),
    Way(
        "ends said", "ends", "no column of ends, `episode_ends='terminated'`", partial(_ends_said, which="terminated"),
        ONLY_RIGHT, domains=ENDING,
    ),
    Way(
        "limits said", "ends", "breakdowns marked, `episode_ends='truncated'`", _breakdowns, ONLY_RIGHT,
        domains=("machine",),
    ),
    Way("time limits", "ends", "recordings stop early, in a column of their own", _cut_early, ONLY_RIGHT, ONLY_RIGHT),
    Way("text states", "codes", "states are numbers written as text", _text_states, ONLY_RIGHT, RIGHT_OR_REFUSED),
    Way(
        "text actions", "codes", "actions are codes written as text", partial(export, actions="text"),
        ONLY_RIGHT, RIGHT_OR_REFUSED,
    ),
    Way(
        "text actions from 1", "codes", "actions are text from 1 on; the rule returns these numbers",
        partial(_rule, style=returns_codes, actions="text from 1"), RIGHT_OR_REFUSED, RIGHT_OR_REFUSED,
    ),
    Way(
        "rule of words", "codes", "actions are words, the rule returns words",
        partial(_rule, style=returns_words, actions="words"), ONLY_RIGHT, RIGHT_OR_REFUSED,
    ),
    Way(
        "rule of codes", "codes", "the rule returns codes, without `num_actions`", partial(_rule, style=returns_codes),
        ONLY_RIGHT, RIGHT_OR_REFUSED,
    ),
    Way(
        "rule of whole floats", "codes", "the rule returns codes as floats",
        partial(_rule, style=partial(returns_codes, change=lambda codes: codes.astype(float))),
        RIGHT_OR_REFUSED, RIGHT_OR_REFUSED,
    ),
    Way(
        "rule of halves", "codes", "the rule returns floats between the codes",
        partial(_rule, style=partial(returns_codes, change=lambda codes: codes + 0.5), valued=False), WARNED, WARNED,
    ),
    Way(
        "rule of unknown codes", "codes", "the rule returns codes that the log never has",
        partial(_rule, style=partial(returns_codes, change=lambda codes: codes + UNKNOWN_CODE), valued=False),
        WARNED, WARNED,
    ),
    Way(
        "dash in states", "damage", "one dash among numbered states", partial(_spoilt, field="states", cell="-"),
        ONLY_REFUSED, ONLY_REFUSED, domains=NUMBERED,
    ),
    Way(
        "dash in actions", "damage", "one dash among numbered actions",
        partial(_spoilt, field="actions", cell="-", actions="codes"), ONLY_REFUSED, ONLY_REFUSED,
    ),
    Way(
        "dash in words", "damage", "one dash among actions that are words",
        partial(_spoilt, field="actions", cell="-", actions="words"), NOT_WRONG, NOT_WRONG,
    ),
    Way(
        "word in rewards", "damage", "one word among the rewards", partial(_spoilt, field="rewards", cell="unclear"),
        ONLY_REFUSED, ONLY_REFUSED,
    ),
    Way("two files", "damage", "two files that both number episodes from 0", _two_files, NOT_WRONG, NOT_WRONG),
    Way(
        "two files, said", "damage", "two such files, `episodes='per file'`", partial(_two_files, said="per file"),
        ONLY_RIGHT, ONLY_RIGHT, formats=("file", "scan"),
    ),
    Way(
        "part files, said", "damage", "an episode goes on in the next file, `episodes='across files'`", _part_files,
        ONLY_RIGHT, ONLY_RIGHT, formats=("file", "scan"),
    ),
    Way("random policy", "damage", "a policy that draws probabilities at each call", _random_policy, WARNED, WARNED),
    Way("equal dates", "damage", "shuffled rows, two rows of an episode on each date", _equal_dates, WARNED),
    Way("two time zones", "damage", "shuffled rows, times of two zones in one column", _two_zones, RIGHT_OR_REFUSED),
    Way("rows after an end", "damage", "some episodes go on after their end", _after_the_end, NOT_WRONG, NOT_WRONG),
    Way("missing date", "damage", "shuffled rows, one without a date", _missing_date, RIGHT_OR_REFUSED),
)  # fmt: skip
