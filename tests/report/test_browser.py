"""The reports in a real browser: no console errors, no requests, readable for all (axe-core), light and dark."""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import gradientdice as gd
from problems import known

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# `make test-browser` fetches it from npm.
AXE = Path(os.environ.get("AXE_CORE", Path(__file__).parents[2] / "build/axe/package/axe.min.js"))
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --enable-logging=stderr --v=0 --dump-dom"
).split()
DARK = "--blink-settings=preferredColorScheme=0"

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on this machine: the pages were not opened in a browser"
)


def opened(path: Path, folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    line = [known(CHROMIUM), *FLAGS, f"--user-data-dir={folder / 'profile'}", *flags, path.as_uri()]
    return subprocess.run(line, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A page with everything in it: a verdict with reasons, a comparison, names with markup."""
    mdp, policy = gd.mdp.boyan_chain("continuing"), gd.TabularPolicy(np.tile([0.02, 0.98], (13, 1)))
    data = mdp.rollout(np.tile([0.97, 0.03], (13, 1)), episodes=12, horizon=40, rng=np.random.default_rng(0))
    estimate = gd.evaluate(data, policy, discount=0.99)
    assert estimate.verdict is gd.Verdict.DO_NOT_TRUST
    path = tmp_path_factory.mktemp("report") / "report.html"
    estimate.report(path, comparison=gd.compare(data, policy, [gd.GradientDICE(0.99), gd.DualDICE(0.99)]))
    return path


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """The pages of a selection and of a curve."""
    mdp, folder = gd.mdp.boyan_chain("continuing"), tmp_path_factory.mktemp("others")
    data = mdp.rollout(np.full((13, 2), 0.5), episodes=30, horizon=30, rng=np.random.default_rng(0))
    policies = {str(share): gd.TabularPolicy(np.tile([share, 1 - share], (13, 1))) for share in (0.2, 0.5, 0.7)}
    gd.select(data, policies, 0.9).report(folder / "selection.html")
    gd.evaluate(data, policies["0.2"], discount=[0.5, 0.9, 1]).report(folder / "curve.html")
    return folder


def test_the_page_in_a_browser(report, tmp_path):
    done = opened(report, tmp_path, f"--log-net-log={tmp_path / 'net.json'}")
    assert 'id="value"' in done.stdout and "<svg" in done.stdout
    assert "CONSOLE" not in done.stderr
    events = json.loads((tmp_path / "net.json").read_text())["events"]
    urls = {event["params"]["url"] for event in events if "url" in event.get("params", {})}
    assert not [url for url in urls if url.startswith("http") and "google" not in url], urls


@pytest.mark.skipif(not AXE.exists(), reason="no axe-core on this machine: run `make test-browser`")
@pytest.mark.parametrize("flags", [(), (DARK,)], ids=["light", "dark"])
def test_the_page_is_accessible(report, tmp_path, flags):
    found = violations(report, tmp_path, *flags)
    assert found == [], json.dumps(found, indent=1)


@pytest.mark.skipif(not AXE.exists(), reason="no axe-core on this machine: run `make test-browser`")
@pytest.mark.parametrize("name", ["selection.html", "curve.html"])
def test_other_pages_are_accessible(others, tmp_path, name):
    found = violations(others / name, tmp_path)
    assert found == [], json.dumps(found, indent=1)


def violations(page: Path, folder: Path, *flags: str) -> list[dict]:
    """What axe-core finds on a page, all of its rules on."""
    script = (
        f"<script>{AXE.read_text(encoding='utf-8')}</script><script>"
        "axe.run(document, {resultTypes: ['violations']}).then(found => {"
        "const list = found.violations.map(v => ({id: v.id, help: v.help, nodes: v.nodes.slice(0, 3).map(n => n.html)}));"
        "const box = document.createElement('template'); box.id = 'axe'; box.dataset.found = JSON.stringify(list);"
        "document.body.append(box); })</script>"
    )
    text = page.read_text(encoding="utf-8")
    checked = folder / "checked.html"
    checked.write_text(text.replace("</body>", script + "</body>"), encoding="utf-8")
    done = opened(checked, folder, "--virtual-time-budget=20000", *flags)
    answer = re.search(r'id="axe" data-found="([^"]*)"', done.stdout)
    assert answer is not None, done.stderr[-2000:]
    return json.loads(html.unescape(answer[1]))


@pytest.mark.skipif(not AXE.exists(), reason="no axe-core on this machine: run `make test-browser`")
def test_what_is_not_accessible_is_found(report, tmp_path):
    worse = tmp_path / "worse.html"
    worse.write_text(
        report.read_text(encoding="utf-8").replace("</main>", "<img src='data:,'></main>"), encoding="utf-8"
    )
    assert [found["id"] for found in violations(worse, tmp_path)] == ["image-alt"]
