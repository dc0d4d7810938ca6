"""Ctrl-C ends a command soon, and a command that was not interrupted leaves nothing behind."""

import signal
import subprocess
import sys
import threading
import time

from gradientdice.cli.interrupts import INTERRUPTED, ends_soon_when_interrupted

# The clean-up takes longer than anyone waits, as a computation outside of Python does.
STUBBORN = """
import sys, time
from gradientdice.cli.interrupts import ends_soon_when_interrupted
told = False
with ends_soon_when_interrupted():
    while True:
        try:
            if not told:
                told = True
                print("ready", flush=True)
            time.sleep(60)
        except KeyboardInterrupt:
            pass
"""


def test_a_process_that_does_not_end_is_ended():
    with subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGINT)
        begun = time.monotonic()
        assert child.wait(timeout=30) == INTERRUPTED
        assert time.monotonic() - begun < 2.5


def test_the_watch_ends_with_its_block():
    before = threading.active_count()
    with ends_soon_when_interrupted():
        assert threading.active_count() == before + 1
    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before
    assert signal.set_wakeup_fd(-1) == -1
