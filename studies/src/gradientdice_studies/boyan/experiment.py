"""Boyan's Chain as the registry runs it."""

from gradientdice_studies.boyan.figures import draw_all
from gradientdice_studies.boyan.grid import FULL, QUICK
from gradientdice_studies.boyan.page import context
from gradientdice_studies.boyan.run import run
from gradientdice_studies.steps import Steps

STEPS = Steps(full=FULL, quick=QUICK, run=run, draw=draw_all, context=context)
