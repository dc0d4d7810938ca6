"""Logs that mislead, as the registry runs them."""

from gradientdice.experiments.steps import Steps
from gradientdice.experiments.traps.figures import draw_all
from gradientdice.experiments.traps.page import context
from gradientdice.experiments.traps.run import QUICK, Scale, run

STEPS = Steps(full=Scale(), quick=QUICK, run=run, context=context, draw=draw_all)
