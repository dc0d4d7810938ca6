"""Several processes that save to one path while others read it: always a whole file, of one of them."""

import subprocess
import sys
import time

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.base.checkpoint import load_checkpoint

SUFFIXES = (".npz", ".parquet", ".csv")
WRITERS, READS = 3, 40
# Every number of a file is the writer's own, so that a mixture of two files shows. It writes until it is told to end.
WRITER = """
import select, sys
from pathlib import Path
import numpy as np
import gradientdice as gd
from gradientdice.base.checkpoint import save_checkpoint
folder, number = Path(sys.argv[1]), int(sys.argv[2])
same = np.full(200 + number, number)
log = gd.Transitions(same, same, same, same)
rounds = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    for suffix in {suffixes}:
        log.save(folder / f"log{{suffix}}")
    save_checkpoint(folder / "state.safetensors", {{"a": same, "b": same}}, {{"run": 1}})
    rounds += 1
    if rounds == 1:
        print("ready", flush=True)
print(rounds)
"""


def test_readers_find_whole_files_while_processes_write(tmp_path):
    code = WRITER.format(suffixes=SUFFIXES)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(1, WRITERS + 1)
    ]
    try:
        for writer in writers:
            assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
        seen = set()
        deadline = time.monotonic() + 60
        reads = 0
        while reads < READS or (len(seen) < WRITERS and time.monotonic() < deadline):
            for suffix in SUFFIXES:
                log = gd.load(tmp_path / f"log{suffix}")
                (number,) = {*log.states, *log.actions, *log.rewards, *log.next_states}
                assert len(log) == 200 + number
                seen.add(int(number))
            state = load_checkpoint(tmp_path / "state.safetensors", {"run": 1})
            assert state is not None and np.array_equal(state["a"], state["b"])
            reads += 1
    finally:
        rounds = [int(writer.communicate("end")[0]) for writer in writers]
    assert seen == set(range(1, WRITERS + 1)) and min(rounds) > 1, (seen, rounds)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {*(f"log{suffix}" for suffix in SUFFIXES), "state.safetensors"}, "no temporary file is left"


KILLED = """
import os, signal, sys
from pathlib import Path
import gradientdice as gd
moment = sys.argv[2]
replace, fsync = os.replace, os.fsync
def die(*given):
    os.kill(os.getpid(), signal.SIGKILL)
if moment == "before it is on the disk":
    os.fsync = die
elif moment == "before the rename":
    os.replace = die
else:
    os.replace = lambda *given: (replace(*given), die())
gd.Transitions([1], [1], [1.0], [1]).save(Path(sys.argv[1]))
"""


@pytest.mark.parametrize("moment", ["before it is on the disk", "before the rename", "after the rename"])
def test_a_process_killed_while_it_saves_leaves_a_whole_file(tmp_path, moment):
    path = tmp_path / "log.csv"
    gd.Transitions([0], [0], [0.0], [0]).save(path)
    child = subprocess.run([sys.executable, "-c", KILLED, str(path), moment])
    assert child.returncode < 0
    assert gd.load(path).rewards.tolist() == [1.0 if moment == "after the rename" else 0.0]
    gd.Transitions([2], [2], [2.0], [2]).save(path)
    assert gd.load(path).rewards.tolist() == [2.0], "what the killed process left is in nobody's way"
