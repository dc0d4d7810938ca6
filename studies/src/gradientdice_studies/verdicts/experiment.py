"""The check of the verdicts as the registry runs it."""

from gradientdice_studies.steps import Steps
from gradientdice_studies.verdicts.figures import draw_all
from gradientdice_studies.verdicts.page import context
from gradientdice_studies.verdicts.run import QUICK, Scale, run

STEPS = Steps(full=Scale(), quick=QUICK, run=run, context=context, draw=draw_all)
