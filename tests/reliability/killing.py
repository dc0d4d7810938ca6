"""Processes that are killed when a file is put in place, one after the other, until one comes to its end.

A program here is a file that is run as `python PROGRAM FOLDER NUMBER MOMENT`: it calls `dying`, and does its work in the
folder. SIGKILL, which no program can answer, comes just before or just after the file of that number gets its name.
"""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MOMENTS = ("before", "after")


def killed(program: str, folder: Path, number: int, moment: str) -> bool:
    """Whether a process that goes on from this folder was killed; if not, it came to its end."""
    child = subprocess.run([sys.executable, program, str(folder), str(number), moment])
    assert child.returncode in (0, -signal.SIGKILL), child
    return child.returncode != 0


@dataclass(frozen=True)
class Kills:
    """How processes are killed.

    Attributes:
        moment: just before or just after a file gets its name.
        most: so many kills, and one more, are tried; then it is taken that none would come to its end.
        portion: how many files a process must write to get further; it is killed at each of them in turn.
        every: kill only at every so many-th file.
    """

    moment: str
    most: int
    portion: int = 1
    every: int = 1

    def until_the_end(self, program: str, folder: Path) -> int:
        """How many processes were killed until one came to its end."""
        kills = 0
        # One that is killed before its first file has its name would never get further.
        first = self.every + (self.moment == "before")
        while kills <= self.most and killed(program, folder, first + kills % self.portion, self.moment):
            kills += 1
        return kills


def dying(number: int, moment: str) -> None:
    """Makes this process end when it puts the file of this number in place."""
    replace, done = os.replace, []

    def replace_or_die(*given: Any) -> None:
        done.append(given)
        if len(done) == number and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        replace(*given)
        if len(done) == number and moment == "after":
            os.kill(os.getpid(), signal.SIGKILL)

    os.replace = replace_or_die
