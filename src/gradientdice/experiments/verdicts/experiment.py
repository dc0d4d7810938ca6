"""The check of the verdicts as the registry runs it."""

from gradientdice.experiments.steps import Steps
from gradientdice.experiments.verdicts.figures import draw_all
from gradientdice.experiments.verdicts.page import context
from gradientdice.experiments.verdicts.run import QUICK, Scale, run

STEPS = Steps(full=Scale(), quick=QUICK, run=run, context=context, draw=draw_all)
