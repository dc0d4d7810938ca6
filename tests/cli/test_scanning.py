"""--scan, --scheduler and --checkpoint: the library's answers from files that are read in batches."""

import json
import sys

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.cli.main import main
from scans import small_table, written

DATA, TARGET = small_table(noise=1.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("scanning")
    written(found / "log", DATA, cuts=(100, 201))
    np.save(found / "target.npy", TARGET.probabilities)
    np.save(found / "even.npy", np.full((6, 2), 0.5))
    return found


@pytest.fixture
def command(monkeypatch, capsys, folder):
    def run(name: str, *arguments: object):
        line = [name, folder / "log", *arguments]
        monkeypatch.setattr(sys, "argv", ["gradientdice", *map(str, line)])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code or 0, *capsys.readouterr()

    return run


def test_evaluate_goes_on_from_a_checkpoint(command, folder, tmp_path):
    expected = gd.evaluate(gd.scan(folder / "log"), TARGET, discount=0.9)
    for _ in range(2):
        options = ("--discount", 0.9, "--scan", "--checkpoint", tmp_path / "passes", "--json")
        code, text, _ = command("evaluate", "--policy", folder / "target.npy", *options)
        assert code == 0
        assert json.loads(text)["interval"] == list(expected.interval or ())
    assert sorted(path.stem for path in (tmp_path / "passes").iterdir()) == ["counts", "pairs", "scores"]


def test_evaluate_takes_several_discounts_and_writes_a_report(command, folder, tmp_path):
    code, text, _ = command(
        "evaluate", "--policy", folder / "target.npy", "--discount", 0.5, "--discount", 0.9, "--scan"
    )
    assert code == 0 and text.startswith("discount 0.5") and "band" in text
    report = tmp_path / "report.html"
    code, _, errors = command(
        "evaluate", "--policy", folder / "target.npy", "--discount", 0.9, "--scan", "--report", report
    )
    assert (code, errors) == (0, f"Wrote {report}.\n") and report.stat().st_size > 10_000


def test_rank_and_select_and_compare(command, folder):
    policies = ("--policy", f"target={folder / 'target.npy'}", "--policy", f"even={folder / 'even.npy'}")
    log, every = gd.scan(folder / "log"), {"target": TARGET, "even": gd.TabularPolicy(np.full((6, 2), 0.5))}
    code, text, _ = command("rank", *policies, "--discount", 0.5, "--baseline", "even", "--scan")
    assert (code, text) == (0, f"{gd.rank(log, every, 0.5, baseline='even')}\n")
    code, text, _ = command("select", *policies, "--discount", 0.5, "--scan")
    assert (code, text) == (0, f"{gd.select(log, every, 0.5)}\n")
    code, text, _ = command("compare", "--policy", folder / "target.npy", "--discount", 0.5, "--scan")
    assert code == 0 and text.count("use this") == 1 and "WIS needs the log in memory" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--scheduler", "tcp://127.0.0.1:1"), "add --scan"),
        (("--checkpoint", "passes"), "add --scan"),
        (("--scan", "--policy", "columns"), "module:name"),
    ],
)
def test_what_does_not_go_together_is_refused(command, folder, arguments, said):
    given = arguments if "--policy" in arguments else ("--policy", folder / "target.npy", *arguments)
    code, _, errors = command("evaluate", "--discount", 0.9, *given)
    assert code == 2 and said in errors


def test_a_scheduler_that_does_not_answer(command, folder, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("gradientdice.cli.scanning.PATIENCE_SECONDS", 0.2)
    options = ("--discount", 0.9, "--scan", "--scheduler", "tcp://127.0.0.1:1")
    code, _, errors = command("evaluate", "--policy", folder / "target.npy", *options)
    assert code == 2 and "no Dask scheduler answers there" in errors
