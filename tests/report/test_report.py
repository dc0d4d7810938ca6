"""The report in a real browser: no console errors, no requests, the figures that matter; and the command line around it."""

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.experiments import demo
from gradientdice.report.page import render

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    demo.write(folder)
    return folder


@pytest.fixture(scope="module")
def estimate(files):
    return gd.evaluate(gd.load(files / demo.LOG), gd.TabularPolicy(demo.TARGET), discount=demo.DISCOUNT)


def test_the_bundled_log_is_the_one_the_command_makes(files):
    from importlib.resources import files as resources

    bundled = resources("gradientdice.experiments").joinpath("data")
    log, again = gd.load(files / demo.LOG), gd.load(bundled / demo.LOG)
    for name in ("states", "actions", "rewards", "next_states", "episodes"):
        np.testing.assert_array_equal(getattr(log, name), getattr(again, name))
    assert (bundled / demo.LOG).stat().st_size < 2_000_000
    np.testing.assert_array_equal(np.loadtxt(bundled / demo.POLICY, delimiter=","), demo.TARGET)


def test_the_demo_covers_the_truth(estimate):
    assert estimate.interval[0] < demo.truth() < estimate.interval[1]
    assert estimate.verdict is gd.Verdict.TRUST


def test_the_page_is_self_contained(estimate):
    page = render(
        estimate, gd.compare(gd.Transitions([0], [0], [0.0], [0]), gd.TabularPolicy([[1.0]]), [gd.GenDICE(1.0)])
    )
    outside = [url for url in re.findall(r'(?:src|href)="([^"]*)"', page) if not url.startswith(("#", "data:"))]
    assert outside == []
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"|<!DOCTYPE[^>]*>', "", page).replace("http://www.w3.org", "")
    assert f"{estimate.value:.6g}" in page and "not applicable" in page


def test_text_in_the_page_is_escaped(estimate):
    from dataclasses import replace

    page = render(replace(estimate, functions="<script>alert(1)</script>"))
    assert "<script>alert" not in page


def test_a_report_is_not_overwritten_by_accident(estimate, tmp_path):
    path = tmp_path / "report.html"
    estimate.report(path)
    before = path.read_text()
    with pytest.raises(gd.InputError, match="force"):
        estimate.report(path)
    assert path.read_text() == before
    estimate.report(path, force=True)
    with pytest.raises(gd.InputError, match="no folder"):
        estimate.report(tmp_path / "nowhere" / "report.html")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: the page was not opened in a browser")
def test_the_page_in_a_browser(estimate, tmp_path):
    path = tmp_path / "report.html"
    estimate.report(path)
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    flags += f" --disable-component-update --disable-sync --user-data-dir={tmp_path / 'profile'}"
    flags += f" --enable-logging=stderr --v=0 --dump-dom --log-net-log={tmp_path / 'net.json'}"
    done = subprocess.run([CHROMIUM, *flags.split(), path.as_uri()], capture_output=True, text=True, timeout=120)
    assert f'id="value">{estimate.value:.6g}' in done.stdout and "<svg" in done.stdout
    assert "CONSOLE" not in done.stderr
    events = json.loads((tmp_path / "net.json").read_text())["events"]
    urls = {event["params"]["url"] for event in events if "url" in event.get("params", {})}
    assert not [url for url in urls if url.startswith("http") and "google" not in url], urls


def command(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "gradientdice", *map(str, arguments)], capture_output=True, text=True, timeout=300
    )


class TestCommandLine:
    def test_evaluate(self, files, estimate, tmp_path):
        arguments = ("evaluate", files / demo.LOG, "--policy", files / demo.POLICY, "--discount", demo.DISCOUNT)
        done = command(*arguments, "--report", tmp_path / "report.html")
        assert done.returncode == 0, done.stderr
        assert f"{estimate.value:.6g}" in done.stdout and (tmp_path / "report.html").exists()
        again = command(*arguments, "--report", tmp_path / "report.html")
        assert again.returncode == 2 and "--force" in again.stderr
        plain = json.loads(command(*arguments, "--json", "--interval", "bootstrap").stdout)
        assert plain["value"] == pytest.approx(estimate.value)

    def test_policies_by_name_and_by_columns(self, files, estimate, tmp_path):
        (tmp_path / "mine.py").write_text(
            "import gradientdice as gd, gradientdice.experiments.demo as d\npolicy = gd.TabularPolicy(d.TARGET)\nnumber = 3\n"
        )
        code = f"import sys, os; os.chdir({str(tmp_path)!r}); from gradientdice.cli import main; sys.argv = ['gradientdice', *sys.argv[1:]]; main()"

        def run(*arguments):
            return subprocess.run(
                [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=300
            )

        base = ("evaluate", files / demo.LOG, "--discount", demo.DISCOUNT, "--json", "--policy")
        assert json.loads(run(*base, "mine:policy").stdout)["value"] == pytest.approx(estimate.value)
        for wrong, words in (
            ("mine:nothing", "has no 'nothing'"),
            ("nowhere:x", "no module"),
            ("mine:number", "is a int"),
            ("what", "module:name"),
        ):
            refused = run(*base, wrong)
            assert refused.returncode == 2 and words in refused.stderr, refused.stderr
        assert "none of the policy's columns" in run(*base, "columns").stderr
        data = gd.load(files / demo.LOG)
        extra = {name: getattr(data, name) for name in ("states", "actions", "rewards", "next_states", "episodes")}
        np.savez(
            tmp_path / "log.npz",
            **extra,
            next_probabilities=demo.TARGET[data.next_states],
            initial_probabilities=demo.TARGET[data.start_states],
        )
        done = run("evaluate", tmp_path / "log.npz", "--discount", demo.DISCOUNT, "--json", "--policy", "columns")
        assert json.loads(done.stdout)["value"] == pytest.approx(estimate.value), done.stderr

    def test_other_column_names(self, files, estimate, tmp_path):
        import pandas as pd

        frame = pd.read_parquet(files / demo.LOG).rename(columns={"states": "obs", "rewards": "profit"})
        frame.to_csv(tmp_path / "log.csv", index=False)
        base = (
            "evaluate",
            tmp_path / "log.csv",
            "--policy",
            files / demo.POLICY,
            "--discount",
            demo.DISCOUNT,
            "--json",
        )
        done = command(*base, "--column", "states=obs", "--column", "rewards=profit")
        assert json.loads(done.stdout)["value"] == pytest.approx(estimate.value), done.stderr
        for wrong, words in (
            (("--column", "states"), "field=name"),
            (("--column", "sates=obs"), "no field"),
            ((), "lacks the field 'states'"),
            (("--column", "states=observations"), "no column 'observations'"),
        ):
            refused = command(*base, *wrong)
            assert refused.returncode == 2 and words in refused.stderr, refused.stderr

    def test_strict_and_compare(self, files, tmp_path):
        log = gd.Transitions(
            **{
                name: getattr(gd.load(files / demo.LOG), name)[:60]
                for name in ("states", "actions", "rewards", "next_states")
            }
        )
        log.save(tmp_path / "short.npz")
        policy = np.zeros((20, 3))
        policy[:, 0] = 1
        np.savetxt(tmp_path / "run.csv", policy, delimiter=",")
        base = (tmp_path / "short.npz", "--policy", tmp_path / "run.csv", "--discount", 1.0)
        compared = command("compare", *base)
        # Two lines each for every estimator, the χ² choice of DualDICE, and the cross-fitted answer.
        lines = 2 * (len(gd.ESTIMATORS) + len(gd.RELATED) + 2)
        assert compared.returncode == 0 and compared.stdout.count("\n") == lines
        strict = command("evaluate", *base, "--strict")
        assert strict.returncode in (2, 3, 4), strict.stdout
