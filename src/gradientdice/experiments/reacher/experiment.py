"""Reacher as the registry runs it."""

from gradientdice.experiments.reacher.figures import draw_all
from gradientdice.experiments.reacher.page import context
from gradientdice.experiments.reacher.run import QUICK, Scale, run
from gradientdice.experiments.steps import Steps

STEPS = Steps(full=Scale(), quick=QUICK, run=run, draw=draw_all, context=context)
