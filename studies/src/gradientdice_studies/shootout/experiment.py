"""The shootout as the registry runs it."""

from gradientdice_studies.shootout.figures import draw_all
from gradientdice_studies.shootout.page import context
from gradientdice_studies.shootout.run import QUICK, Scale, run
from gradientdice_studies.steps import Steps

STEPS = Steps(full=Scale(), quick=QUICK, run=run, draw=draw_all, context=context)
