"""Continuous states as the registry runs the experiment."""

from gradientdice_studies.continuous.page import context
from gradientdice_studies.continuous.run import QUICK, Scale, run
from gradientdice_studies.steps import Steps

STEPS = Steps(full=Scale(), quick=QUICK, run=run, context=context)
