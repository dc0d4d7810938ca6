"""The shootout as the registry runs it."""

from gradientdice.experiments.shootout.figures import draw_all
from gradientdice.experiments.shootout.page import context
from gradientdice.experiments.shootout.run import QUICK, Scale, run
from gradientdice.experiments.steps import Steps

STEPS = Steps(full=Scale(), quick=QUICK, run=run, draw=draw_all, context=context)
