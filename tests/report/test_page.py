"""The report in a real browser: no console errors, no requests, the figures that matter."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.experiments import demo
from gradientdice.report.page import render
from problems import known

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

    bundled = Path(str(resources("gradientdice.experiments"))) / "data"
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
    done = subprocess.run([known(CHROMIUM), *flags.split(), path.as_uri()], capture_output=True, text=True, timeout=120)
    assert f'id="value">{estimate.value:.6g}' in done.stdout and "<svg" in done.stdout
    assert "CONSOLE" not in done.stderr
    events = json.loads((tmp_path / "net.json").read_text())["events"]
    urls = {event["params"]["url"] for event in events if "url" in event.get("params", {})}
    assert not [url for url in urls if url.startswith("http") and "google" not in url], urls
