"""Read-only folders and files, and unreadable ones, as a user who is not root meets them."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import gradientdice as gd

# Permissions do not bind root: the child becomes nobody after it has imported all that it needs, and then tries.
CHILD = """
import contextlib, io, json, os, sys
from pathlib import Path
import numpy as np
import gradientdice as gd
import rich.progress, rich.traceback
from gradientdice.cli.main import main
from gradientdice.base.checkpoint import save_checkpoint

folder, own = Path(sys.argv[1]), Path(sys.argv[1]) / "own"
log = gd.Transitions([0, 1, 0, 1], [0, 1, 1, 0], [0.0, 1.0, 2.0, 0.0], [1, 0, 1, 0], [0, 1])
estimate = gd.evaluate(log, gd.TabularPolicy(np.full((2, 2), 0.5)), discount=0.5)

def command(*arguments):
    sys.argv, out, err = ["gradientdice", *map(str, arguments)], io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            return [end.code, err.getvalue()]

def evaluate(log, *more):
    return command("evaluate", log, "--policy", folder / "policy.csv", "--discount", 0.5, *more)

for suffix in (".npz", ".csv", ".parquet"):
    log.save(own / f"warm{suffix}")
    gd.load(own / f"warm{suffix}")
save_checkpoint(own / "warm.safetensors", {"a": np.zeros(1)}, {})
estimate.report(own / "warm.html")
assert evaluate(own / "warm.npz")[0] == 0 and evaluate(own / "nothing.npz")[0] == 2
assert command("reproduce", "hard-example", "--output", folder / "policy.csv")[0] == 2
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)

def tried(work):
    try:
        return work()
    except gd.InputError as error:
        return [type(error).__name__, str(error)]

tries = {"reports": lambda: estimate.report(folder / "closed" / "new.html")}
for suffix in (".npz", ".csv", ".parquet"):
    for place in ("closed/log", "closed/new", "own/fixed"):
        tries[f"save {place}{suffix}"] = lambda path=folder / f"{place}{suffix}": log.save(path)
    for place in ("own/secret", "hidden/log"):
        tries[f"load {place}{suffix}"] = lambda path=folder / f"{place}{suffix}": gd.load(path)
tries["checkpoint closed/new"] = lambda: save_checkpoint(folder / "closed" / "new" / "a.safetensors", {"a": np.zeros(1)}, {})
tries["report command"] = lambda: evaluate(own / "warm.npz", "--report", folder / "closed" / "new.html")
tries["load command"] = lambda: evaluate(own / "secret.npz")
tries["reproduce command"] = lambda: command("reproduce", "hard-example", "--output", folder / "closed" / "results")
print(json.dumps({name: tried(work) for name, work in tries.items()}))
"""


@pytest.fixture(scope="module")
def tried():
    """(what became of each try, the folder, what was in it before)."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = gd.Transitions([0, 1], [0, 1], [0.0, 1.0], [1, 0])
        (folder / "policy.csv").write_text("0.5,0.5\n0.5,0.5\n")
        for part in ("closed", "own", "hidden"):
            (folder / part).mkdir()
            for suffix in (".npz", ".csv", ".parquet"):
                log.save(folder / part / f"log{suffix}")
        for suffix in (".npz", ".csv", ".parquet"):
            for part, mode in (("fixed", 0o444), ("secret", 0o000)):
                log.save(folder / "own" / f"{part}{suffix}")
                (folder / "own" / f"{part}{suffix}").chmod(mode)
            (folder / "closed" / f"log{suffix}").chmod(0o666)
        before = _contents(folder)
        for part, mode in ((".", 0o755), ("own", 0o777), ("closed", 0o555), ("hidden", 0o000)):
            (folder / part).chmod(mode)
        done = subprocess.run([sys.executable, "-c", CHILD, name], capture_output=True, text=True, timeout=200)
        for part in ("closed", "hidden"):
            (folder / part).chmod(0o755)
        for path in (folder / "own").iterdir():
            path.chmod(0o644)
        assert done.returncode == 0, done.stderr
        yield json.loads(done.stdout), _contents(folder), before


def _contents(folder: Path) -> dict[str, bytes]:
    if os.getuid():
        for path in folder.rglob("secret*"):
            path.chmod(0o400)
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for path in folder.rglob("secret*"):
        path.chmod(0o000)
    return {name: content for name, content in found.items() if "warm" not in name}


def test_each_is_refused_in_a_sentence(tried):
    for name, end in tried[0].items():
        assert end is not None, name
        kind, message = end
        expected = 2 if name.endswith("command") else "FileError" if not name.startswith("load") else "InputError"
        assert kind == expected and len(message.strip().splitlines()) == 1 and len(message) < 400, (name, end)


def test_the_sentence_says_what_to_do(tried):
    ends = tried[0]
    assert "could not be written (Permission denied)" in ends["save closed/new.npz"][1]
    assert "The file that was there is still there" in ends["save closed/log.npz"][1]
    assert "may not be written: change its permissions" in ends["save own/fixed.npz"][1]
    assert "may not be read: change its permissions" in ends["load own/secret.npz"][1]
    assert "cannot be read (Permission denied)" in ends["load hidden/log.npz"][1]


def test_nothing_was_changed_and_nothing_left(tried):
    _, after, before = tried
    assert after == before
