"""The intervals of neural answers as the registry runs the experiment."""

from gradientdice.experiments.neural.page import context
from gradientdice.experiments.neural.run import QUICK, Scale, run
from gradientdice.experiments.steps import Steps

STEPS = Steps(full=Scale(), quick=QUICK, run=run, context=context)
