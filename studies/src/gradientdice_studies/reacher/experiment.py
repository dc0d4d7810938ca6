"""Reacher as the registry runs it."""

from gradientdice_studies.reacher.figures import draw_all
from gradientdice_studies.reacher.page import context
from gradientdice_studies.reacher.run import QUICK, Scale, run
from gradientdice_studies.steps import Steps

STEPS = Steps(full=Scale(), quick=QUICK, run=run, draw=draw_all, context=context)
