"""The coverage of intervals as the registry runs the experiment."""

from gradientdice_studies.coverage.page import context
from gradientdice_studies.coverage.run import FULL, QUICK, run
from gradientdice_studies.steps import Steps

STEPS = Steps(full=FULL, quick=QUICK, run=run, context=context)
