"""Boyan's Chain as the registry runs it."""

from gradientdice.experiments.boyan.figures import draw_all
from gradientdice.experiments.boyan.grid import FULL, QUICK
from gradientdice.experiments.boyan.page import context
from gradientdice.experiments.boyan.run import run
from gradientdice.experiments.steps import Steps

STEPS = Steps(full=FULL, quick=QUICK, run=run, draw=draw_all, context=context)
