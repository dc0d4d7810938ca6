"""The registry: every experiment is in it, loads, and has the options that it says."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

import gradientdice_studies
from gradientdice_studies.registry import EXPERIMENTS
from gradientdice_studies.steps import Steps, no_figures

FOLDER = Path(gradientdice_studies.__file__).parent


def test_every_package_with_steps_is_registered():
    packages = {path.parent.name for path in FOLDER.glob("*/page.py")}
    assert packages == {experiment.package for experiment in EXPERIMENTS.values()}


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=list(EXPERIMENTS))
def test_an_entry_agrees_with_its_package(experiment):
    steps = experiment.load()
    assert isinstance(steps, Steps)
    assert (steps.quick is None) == (experiment.quick is None)
    assert type(steps.quick) in (type(None), type(steps.full)) and steps.quick != steps.full
    names = {field.name for field in fields(steps.full)}
    for option in experiment.options:
        assert option.field in names and getattr(steps.full, option.field) == option.default


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=list(EXPERIMENTS))
def test_a_page_has_figures_if_and_only_if_they_are_drawn(experiment):
    template = (FOLDER / experiment.package / "page.md.jinja").read_text()
    assert bool(re.search(r"figures\.", template)) == (experiment.load().draw is not no_figures)


def test_what_is_left_out_with_0_may_be_0():
    least = {option.field: option.least for option in EXPERIMENTS["control"].options}
    assert least == {"logs": 1, "large_logs": 0, "largest": 1, "report": 0, "networks": 0}
