"""The coverage of intervals as the registry runs the experiment."""

from gradientdice.experiments.coverage.page import context
from gradientdice.experiments.coverage.run import FULL, QUICK, run
from gradientdice.experiments.steps import Steps

STEPS = Steps(full=FULL, quick=QUICK, run=run, context=context)
