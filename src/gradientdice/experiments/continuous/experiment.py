"""Continuous states as the registry runs the experiment."""

from gradientdice.experiments.continuous.page import context
from gradientdice.experiments.continuous.run import QUICK, Scale, run
from gradientdice.experiments.steps import Steps

STEPS = Steps(full=Scale(), quick=QUICK, run=run, context=context)
