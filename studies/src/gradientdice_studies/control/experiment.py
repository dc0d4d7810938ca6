"""The control suite as the registry runs it."""

from gradientdice_studies.control.figures import draw_all
from gradientdice_studies.control.page import context
from gradientdice_studies.control.run import QUICK, Scale, run
from gradientdice_studies.steps import Steps

STEPS = Steps(full=Scale(), quick=QUICK, run=run, context=context, draw=draw_all)
