"""Logs that mislead, as the registry runs them."""

from gradientdice_studies.steps import Steps
from gradientdice_studies.traps.figures import draw_all
from gradientdice_studies.traps.page import context
from gradientdice_studies.traps.run import QUICK, Scale, run

STEPS = Steps(full=Scale(), quick=QUICK, run=run, context=context, draw=draw_all)
