"""Ten policies on one log, as the registry runs them."""

from gradientdice_studies.ranking.figures import draw_all
from gradientdice_studies.ranking.page import context
from gradientdice_studies.ranking.run import QUICK, Scale, run
from gradientdice_studies.steps import Steps

STEPS = Steps(full=Scale(), quick=QUICK, run=run, context=context, draw=draw_all)
