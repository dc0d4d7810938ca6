"""The hard example as the registry runs it."""

from gradientdice.experiments.hard_example.figures import draw_all
from gradientdice.experiments.hard_example.page import context
from gradientdice.experiments.hard_example.run import Scale, run
from gradientdice.experiments.steps import Steps

STEPS = Steps(full=Scale(), run=run, draw=draw_all, context=context)
