"""Cores that this process may use, where the system tells and where it does not."""

import os

from gradientdice.base.cores import usable_cores


def test_only_the_cores_of_this_process_count(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 2, 5}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    assert usable_cores() == 3


def test_where_the_system_does_not_tell_all_cores_count(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    assert usable_cores() == 16
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores() == 1
