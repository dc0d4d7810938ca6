"""The intervals of neural answers as the registry runs the experiment."""

from gradientdice_studies.neural.page import context
from gradientdice_studies.neural.run import QUICK, Scale, run
from gradientdice_studies.steps import Steps

STEPS = Steps(full=Scale(), quick=QUICK, run=run, context=context)
