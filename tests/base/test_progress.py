"""Bars on terminals, for work that takes long; silence elsewhere."""

import io
import multiprocessing
import sys
import time

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.base import progress
from gradientdice.base.progress import working


class Terminal(io.StringIO):
    """Standard error as a person at a terminal has it."""

    def isatty(self) -> bool:
        return True


def a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Called in the test itself: pytest takes standard error over again once the fixtures are made."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return stream


def test_short_work_shows_nothing(monkeypatch):
    terminal = a_terminal(monkeypatch)
    with working("a moment", 2) as advance:
        advance(2)
    assert terminal.getvalue() == ""


def test_long_work_says_what_is_done_and_how_it_goes(monkeypatch):
    terminal = a_terminal(monkeypatch)
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.05)
    with working("choosing features", 7) as advance:
        assert terminal.getvalue() == ""
        advance(3, "value 0.25")
        time.sleep(0.5)
    shown = terminal.getvalue()
    assert "choosing features" in shown and "value 0.25" in shown and "3/7" in shown


def test_a_bar_that_is_asked_for_is_there_at_once(monkeypatch):
    terminal = a_terminal(monkeypatch)
    with working("training", 4, True):
        assert "training" in terminal.getvalue()


def test_loops_inside_one_another_have_a_line_each_and_leave_it(monkeypatch):
    terminal = a_terminal(monkeypatch)
    with working("outer", 2, True) as outer:
        with working("inner", 3) as inner:
            inner(3)
            time.sleep(0.3)  # a display is drawn ten times a second
        outer(1)
        with working("another", 3):
            time.sleep(0.3)
    shown = terminal.getvalue()
    assert all(label in shown for label in ("outer", "inner", "another"))
    before = len(shown)
    with working("later", 1):  # a display of its own, which again waits
        pass
    assert len(terminal.getvalue()) == before


def test_nothing_is_shown_unless_wanted_and_seen(monkeypatch):
    terminal = a_terminal(monkeypatch)

    def shown(show: bool | None) -> str:
        with working("training", 1, show) as advance:
            advance(1, "value 1")
            time.sleep(0.02)
        return terminal.getvalue()

    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.0)
    assert shown(False) == ""
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: object())
    assert shown(True) == ""  # in a worker process
    monkeypatch.undo()
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    assert shown(True) == "" and pipe.getvalue() == ""


def test_evaluate_shows_its_search_by_itself_and_not_when_told_so(monkeypatch):
    terminal = a_terminal(monkeypatch)
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.0)
    rng = np.random.default_rng(0)
    states = rng.normal(size=(300, 1))
    data = gd.Transitions(states, rng.integers(0, 2, 300), states[:, 0], 0.5 * states, initial_states=states[:50])
    policy = gd.DiscretePolicy(lambda s: np.tile([0.3, 0.7], (len(s), 1)), 2)
    quiet = gd.evaluate(data, policy, discount=0.5, progress=False, effort="quick")
    assert terminal.getvalue() == ""
    assert gd.evaluate(data, policy, discount=0.5, effort="quick").value == quiet.value
    assert "ratios, values, answers" in terminal.getvalue()
