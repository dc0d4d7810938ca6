"""The control suite as the registry runs it."""

from gradientdice.experiments.control.figures import draw_all
from gradientdice.experiments.control.page import context
from gradientdice.experiments.control.run import QUICK, Scale, run
from gradientdice.experiments.steps import Steps

STEPS = Steps(full=Scale(), quick=QUICK, run=run, context=context, draw=draw_all)
