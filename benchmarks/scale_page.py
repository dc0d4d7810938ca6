"""The page docs/results/scale.md, from what `scale.py` measured."""

from __future__ import annotations

import statistics
import textwrap
from pathlib import Path
from typing import Any

from scale_model import NETWORK, Costs

Measured = dict[str, Any]
LINE = 100


def write_page(measured: Measured, path: Path) -> str:
    """Writes the page and its pictures; returns its text."""
    from gradientdice.base.atomic import write_atomically

    pictures = path.with_suffix("")
    pictures.mkdir(parents=True, exist_ok=True)
    parts = [_head(measured)]
    if _sizes(measured, "table"):
        parts.append(_table(measured))
    if _sizes(measured, "states"):
        parts.append(_states(measured))
    if _sizes(measured, "features"):
        parts.append(_features(measured))
    if _sizes(measured, "table") and _sizes(measured, "features"):
        _draw_sizes(measured, pictures / "sizes.png")
        parts.append(_memory(measured))
    if "workers/parts" in measured and "pinned_seconds" in measured.get("workers/2/0", {}):
        _draw_workers(measured, pictures / "workers.png")
        parts.append(_workers(measured))
    if any(name.startswith("equal/") for name in measured):
        parts.append(_equal(measured))
    text = "\n\n".join(_wrapped(part) for part in parts) + "\n"
    write_atomically(path, lambda place: place.write_text(text, encoding="utf-8"))
    return text


def _wrapped(text: str) -> str:
    """Paragraphs in lines of the usual length; tables, headings and pictures as they are."""
    blocks = text.split("\n\n")
    return "\n\n".join(one if one.startswith(("|", "#", "!")) else textwrap.fill(one, LINE) for one in blocks)


def _all(measured: Measured, prefix: str) -> list[Measured]:
    """The repeats of one measurement."""
    names = sorted(name for name in measured if name.startswith(f"{prefix}/"))
    return [measured[name] for name in names]


def _seconds(measured: Measured, prefix: str) -> float:
    return statistics.median(one["seconds"] for one in _all(measured, prefix))


def _times(measured: dict[str, Any], name: str) -> str:
    """How often something was measured."""
    count = sum(key.startswith(f"{name}/") for key in measured)
    return "once" if count == 1 else f"{count} times"


def _median(measured: Measured, prefix: str, figure: str) -> float:
    return statistics.median(one[figure] for one in _all(measured, prefix))


def _sizes(measured: Measured, section: str) -> list[int]:
    return sorted({int(name.split("/")[1]) for name in measured if name.startswith(f"{section}/")})


def _power(rows: float) -> str:
    """Powers of ten as such."""
    exponent = len(str(int(rows))) - 1
    return "10" + "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(exponent))


def _head(measured: Measured) -> str:
    of = measured["machine"]
    busy = (
        " Other work used these cores at the time: seconds are too long, and shares may be wrong in either direction."
        if of["load"] > of["cores"] / 2
        else ""
    )
    return f"""# Logs beyond memory: speed, memory, scaling

Written by `make bench-scale` on a machine with {of["cores"]} cores (numpy {of["numpy"]}, pyarrow {of["pyarrow"]}; load when the last
measurement began: {of["load"]:.1f}). Every measurement runs in a process of its own, after a small log that loads all
libraries; what is compared is measured in turn, and the median of the repeats is shown. Seconds depend on the
machine; the shares are what to look at. Logs are Parquet files by a seeded generator.{busy}"""


def _table(measured: Measured) -> str:
    lines = []
    for rows in _sizes(measured, "table"):
        read, own = (_all(measured, f"table/{rows}/{task}") for task in ("read", "table"))
        share = statistics.median(a["seconds"] / b["seconds"] for a, b in zip(read, own, strict=False))
        seconds, peak = _seconds(measured, f"table/{rows}/table"), max(one["GiB"] for one in own)
        lines.append(
            f"| {_power(rows)} | {seconds:.2f} | {rows / seconds / 1e6:.1f} | {_seconds(measured, f'table/{rows}/read'):.2f} "
            f"| {share:.0%} | {peak:.2f} |"
        )
    return f"""## A table of 1,000 states

`gd.evaluate` with value, interval and diagnostics: four actions, rewards of 0 and 1, initial states. The yardstick is
pyarrow: it reads the same six columns with its default threads (all cores) and sums each, batch by batch. The bar is a
third of its rate and 1.5 GiB, at 10⁸ rows or more. What an answer costs beside the pass (the sample, the solve, the diagnostics) is
included, and shows in the small logs.

| rows | seconds | million rows per second | pyarrow: seconds | share of pyarrow's rate | peak GiB |
|---|---|---|---|---|---|
{chr(10).join(lines)}"""


def _features(measured: Measured) -> str:
    lines = []
    for rows in _sizes(measured, "features"):
        cells = []
        for cores in ("one core", "all cores"):
            found = _all(measured, f"features/{rows}/features, {cores}")
            cells.append(f"{rows / _seconds(measured, f'features/{rows}/features, {cores}') / 1e6:.2f}")
            for yardstick in ("dense_row_seconds", "dgemm_row_seconds"):
                shares = [rows * one[yardstick] / one["seconds"] for one in found if yardstick in one]
                cells.append(f"{statistics.median(shares):.0%}" if shares else "")
        whole = _all(measured, f"features/{rows}/cosines, all cores")
        rate = rows / _seconds(measured, f"features/{rows}/cosines, all cores") / 1e6
        peak = max(one["GiB"] for one in _all(measured, f"features/{rows}/features, all cores") + whole)
        lines.append(f"| {_power(rows)} | {' | '.join(cells)} | {rate:.2f} | {peak:.2f} |")
    return f"""## Linear features: 64

`gd.Moments.from_transitions`: states of four numbers, two actions, episodes. At each row the feature function is asked three times (at the
logged action, and at both actions of the next state), and the moments are two products, xᵀx and x̄'ᵀx. The bar is 60% of dgemm's
rate and 2 GiB. Dgemm's rate is that of two products of 64 × 64 numbers per row, 16,384 operations, by `x.T @ y` on float64 arrays of 131,072 × 64
that are in memory already: no file, no features, no mean over actions. It is measured before and after, in the same process, with the same
number of threads. The library does fewer operations: xᵀx is symmetric, and NumPy gives it to dsyrk, which does half of them. "Of both"
is the share of a stricter yardstick, which has this advantage too: `x.T @ x` and `x.T @ y` in memory. "Nothing" is a feature function that returns
a fixed array, so that all the time is the library's; on one core reading is on that core, too. "Cosines" is a function as a user
would write it, whose own time is included. On all cores, BLAS has one thread while the library's threads form products.

| rows | nothing, one core: million rows per second | of dgemm | of both | nothing, all cores: million rows per second | of dgemm | of both | cosines, all cores: million rows per second | peak GiB |
|---|---|---|---|---|---|---|---|---|
{chr(10).join(lines)}"""


def _states(measured: Measured) -> str:
    lines = []
    for rows in _sizes(measured, "states"):
        one = measured[f"states/{rows}/states/0"]
        lines.append(
            f"| {_power(rows)} | {one['cells'] / 1e6:.1f} | {one['counting_seconds']:.0f} | {one['counting_cpu']:.0f} "
            f"| {one['counting_GiB']:.1f} | {one['seconds']:.0f} | {one['cpu']:.0f} | {one['GiB']:.1f} |"
        )
    return f"""## A table of 100,000 states

The same log with a hundred times as many states: each state and action leads to ten others, or ends. A cell is a combination of state, action,
and next state or end. "Counting" is the pass; "answer" is `gd.evaluate`: the pass, the sparse solve, the interval and the diagnostics.

| rows | million cells | counting: seconds | processor seconds | peak GiB | answer: seconds | processor seconds | peak GiB |
|---|---|---|---|---|---|---|---|
{chr(10).join(lines)}

Memory follows the cells that were seen and, slowly, the rows: counts of 1, 2, 4, … parts wait to be put together, so that ten times as many
rows keep three more of them, each some hundred megabytes here.{_billion(measured)}"""


def _billion(measured: Measured) -> str:
    """What 10⁹ rows would take, where two sizes tell."""
    sizes = _sizes(measured, "states")
    if len(sizes) < 2:
        return ""
    (few, first), (many, last) = ((rows, measured[f"states/{rows}/states/0"]) for rows in (sizes[0], sizes[-1]))
    rate = (last["counting_cpu"] - first["counting_cpu"]) / (many - few)
    total = last["cpu"] + rate * (10**9 - many)
    return (
        f" 10⁹ rows would take about {total / 60:.0f} minutes of one core, at the {rate * 1e9:.0f} ns per row between these "
        "sizes: extrapolated, not measured."
    )


def _memory(measured: Measured) -> str:
    return """## Memory and time by rows

![Peak memory is flat and time is linear in the number of rows](scale/sizes.png)

Peak memory is that of the process, libraries included (about 0.2 GiB). It follows the batches and the table, not the rows."""


def _costs(measured: Measured) -> Costs:
    parts = measured["workers/parts"]
    runs = [one for count in _workers_measured(measured) for one in _all(measured, f"workers/{count}")]
    fixed = min(one["small_seconds"] for one in runs)
    # More workers than cores hold each other up, which says nothing of the scheduler.
    alone = max(count for count in _workers_measured(measured) if count <= max(1, measured["machine"]["cores"]))
    task = statistics.median(one["task_seconds"] for one in _all(measured, f"workers/{alone}"))
    return Costs(fixed, parts["row_seconds"], parts["merge_seconds"], task, parts["bytes"])


def _workers_measured(measured: Measured) -> list[int]:
    names = [name.split("/")[1] for name in measured if name.startswith("workers/")]
    return sorted({int(name) for name in names if name.isdigit()})


def _worker_rows(measured: Measured) -> int:
    return int(measured["workers/rows"]["rows"])


def _workers(measured: Measured) -> str:
    costs, cores, rows = _costs(measured), measured["machine"]["cores"], _worker_rows(measured)
    lines = []
    for count in _workers_measured(measured):
        cells = []
        for way in ("pinned_", ""):
            seconds = _median(measured, f"workers/{count}", f"{way}seconds")
            speed = _median(measured, "workers/1", f"{way}seconds") / seconds
            cells.append(f"{seconds:.2f} | {speed:.2f}")
        spent = _median(measured, f"workers/{count}", "workers_cpu")
        task = _median(measured, f"workers/{count}", "task_seconds")
        model = costs.seconds(rows, count, cores)
        lines.append(f"| {count} | {' | '.join(cells)} | {spent:.2f} | {model:.2f} | {1e3 * task:.2f} |")
    far = []
    for size in (10**9, 10**10):
        one = costs.seconds(size, 1)
        for count in (1, 10, 100):
            seconds = costs.seconds(size, count)
            far.append(
                f"| {_power(size)} | {count} | {seconds:,.1f} | {one / seconds:.1f} | {one / seconds / count:.0%} |"
            )
    return f"""## Workers

The table from {_power(rows)} rows by `distributed` worker processes with one thread each, on the {cores} cores of this machine: beyond {cores}
workers nothing can become faster. A worker is one process that runs one task at a time (`threads_per_worker=1`, BLAS with one thread, and no
thread that reads ahead); Arrow still fetches bytes of the file in threads of its own. "Each on one core" holds every worker with all its
threads to one core, so that one worker cannot use two; "anywhere" leaves that to the system. The client and the scheduler are another process,
which needs a core for {_median(measured, "workers/1", "here_cpu"):.1f} s of an answer in either case. The bar is 1.7 times as fast with two workers as with one.
Two workers were measured {_times(measured, "workers/2")}; a speed-up above two is noise.

| workers | each on one core: seconds | times as fast | anywhere: seconds | times as fast | processor seconds of the workers | by the model below | ms of a task that does nothing |
|---|---|---|---|---|---|---|---|
{chr(10).join(lines)}

![Measured and modelled seconds by workers](scale/workers.png)

The model: an answer takes a fixed time ({costs.fixed:.2f} s: the sample, the solve, the diagnostics), then whatever is slowest of three things that
go on at once: the workers (parts of four million rows at {1e9 * costs.row:.0f} ns per row; a merge of two sums takes {1e3 * costs.merge:.1f} ms, and
their {costs.size / 2**20:.1f} MiB move at {NETWORK / 1e9:.2f} GB/s), the scheduler ({1e3 * costs.task:.2f} ms per task, as measured with a worker for each core), and the client, which merges one
block for every eight parts. It assumes that every worker has a core of its own, reads its files as fast as this machine does from its cache,
and has a network of ten gigabits; nothing is lost and sent again. These are extrapolations, not measurements:

| rows | workers | seconds | times as fast as one | per worker |
|---|---|---|---|---|
{chr(10).join(far)}"""


def _equal(measured: Measured) -> str:
    lines = []
    for name in sorted(name for name in measured if name.startswith("equal/")):
        answers = {key: value for key, value in measured[name].items() if key != "GiB"}
        first = next(iter(answers.values()))
        for way, answer in answers.items():
            apart = max(abs(a - b) for a, b in zip(answer, first, strict=True)) / max(abs(part) for part in first)
            same = "yes" if answer == answers["scan"] else "no"
            lines.append(f"| {name.removeprefix('equal/')} | {way} | {answer[0]!r} | {apart:.1e} | {same} |")
    return f"""## The same answer

10⁶ rows: value and both ends of the interval. "Apart" is the largest difference to the first way of the same log, as a share of the largest of the three.

| log | way | value | apart | the bits of scan |
|---|---|---|---|---|
{chr(10).join(lines)}"""


def _draw_sizes(measured: Measured, path: Path) -> None:
    import matplotlib.pyplot as plt

    from gradientdice.report.theme import ACCENT, SOFT, WARM, styled

    kinds = (("table", "table", "table", ACCENT), ("features", "cosines, all cores", "64 features", WARM))
    with styled():
        figure, (memory, seconds) = plt.subplots(1, 2, figsize=(8, 3))
        for section, task, label, color in kinds:
            sizes = _sizes(measured, section)
            peaks = [max(one["GiB"] for one in _all(measured, f"{section}/{rows}/{task}")) for rows in sizes]
            times = [_seconds(measured, f"{section}/{rows}/{task}") for rows in sizes]
            memory.plot(sizes, peaks, "o-", color=color, label=label)
            seconds.plot(sizes, times, "o-", color=color, label=label)
            seconds.plot(sizes, [times[-1] * rows / sizes[-1] for rows in sizes], ":", color=SOFT)
        memory.set(xscale="log", xlabel="rows", ylabel="peak GiB", ylim=(0, 1.2 * memory.get_ylim()[1]))
        seconds.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds (dotted: linear)")
        memory.legend()
        figure.savefig(path, dpi=150)
        plt.close(figure)


def _draw_workers(measured: Measured, path: Path) -> None:
    import matplotlib.pyplot as plt

    from gradientdice.report.theme import ACCENT, SOFT, WARM, styled

    costs, cores, rows = _costs(measured), measured["machine"]["cores"], _worker_rows(measured)
    counts = _workers_measured(measured)
    many = [1, 2, 4, 8, 16, 32, 64, 100]
    with styled():
        figure, (here, far) = plt.subplots(1, 2, figsize=(8, 3))
        here.plot(
            counts,
            [_median(measured, f"workers/{count}", "pinned_seconds") for count in counts],
            "o",
            color=ACCENT,
            label="measured",
        )
        here.plot(counts, [costs.seconds(rows, count, cores) for count in counts], "-", color=WARM, label="model")
        here.set(
            xscale="log", xlabel=f"workers on {cores} cores", ylabel=f"seconds, {_power(rows)} rows", ylim=(0, None)
        )
        here.set_xticks(counts, [str(count) for count in counts])
        here.minorticks_off()
        here.legend()
        for size, color in ((10**9, ACCENT), (10**10, WARM)):
            speeds = [costs.seconds(size, 1) / costs.seconds(size, count) for count in many]
            far.plot(many, speeds, "-", color=color, label=f"{_power(size)} rows, model")
        far.plot(many, many, ":", color=SOFT, label="as many times as workers")
        far.set(xscale="log", yscale="log", xlabel="workers, each with a core", ylabel="times as fast as one")
        far.legend()
        figure.savefig(path, dpi=150)
        plt.close(figure)
