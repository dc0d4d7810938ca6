"""The hard example as the registry runs it."""

from gradientdice_studies.hard_example.figures import draw_all
from gradientdice_studies.hard_example.page import context
from gradientdice_studies.hard_example.run import Scale, run
from gradientdice_studies.steps import Steps

STEPS = Steps(full=Scale(), run=run, draw=draw_all, context=context)
