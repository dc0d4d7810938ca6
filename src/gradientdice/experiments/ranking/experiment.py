"""Ten policies on one log, as the registry runs them."""

from gradientdice.experiments.ranking.figures import draw_all
from gradientdice.experiments.ranking.page import context
from gradientdice.experiments.ranking.run import QUICK, Scale, run
from gradientdice.experiments.steps import Steps

STEPS = Steps(full=Scale(), quick=QUICK, run=run, context=context, draw=draw_all)
