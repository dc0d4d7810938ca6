"""The experiments that `gradientdice reproduce` knows, one entry each.

An experiment is a package of this folder and an entry here. The package has a module `page` with its `Steps`, and its
results page as a Jinja template, `page.md.jinja`. The package is imported when the experiment runs, so that the
list itself costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradientdice_studies.steps import Steps


@dataclass(frozen=True)
class Option:
    """An integer option of the command, which sets a field of the experiment's scale.

    Attributes:
        field: the field of the scale.
        default: its value at full scale, for the help text.
        help: what it is.
        least: the smallest value that makes sense.
    """

    field: str
    default: int
    help: str
    least: int = 1


@dataclass(frozen=True)
class Experiment:
    """What the command line needs to know about an experiment before it runs.

    Attributes:
        name: its name on the command line. The package has the same name, with underscores.
        help: one sentence about it.
        quick: what is smaller with --quick; None for an experiment that is always quick.
        options: options beside those that every experiment has.
    """

    name: str
    help: str
    quick: str | None = None
    options: tuple[Option, ...] = ()

    @property
    def package(self) -> str:
        """The name of its package in this folder, and of its page."""
        return self.name.replace("-", "_")

    def load(self) -> Steps[Any, Any]:
        """Imports the experiment."""
        return import_module(f"gradientdice_studies.{self.package}.page").STEPS


EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            "boyan",
            "Boyan's Chain, figures 2 and 3: 9,720 runs, three studies of our own, and the closed form.",
            quick="Shorter and fewer runs: within a minute.",
        ),
        Experiment(
            "hard-example",
            "The one-state example on which GenDICE's gradient vanishes at a wrong point.",
        ),
        Experiment(
            "coverage",
            "How often intervals cover the truth, and how wide they are: six MDPs, right and wrong features.",
            quick="Few replications: within a few minutes.",
        ),
        Experiment(
            "verdicts",
            "How often each verdict is right: good and bad overlap, few and many rows, right and wrong features.",
            quick="Few replications.",
        ),
        Experiment(
            "traps",
            "Logs that mislead, beside honest ones of the same sizes: does the verdict see it?",
            quick="Five logs per family.",
            options=(
                Option("logs", 100, "Logs per family."),
                Option("continuous_logs", 100, "Logs per family with continuous states."),
            ),
        ),
        Experiment(
            "files",
            "Exports as users have them, good and damaged: is an answer right, refused, or wrong and trusted?",
            quick="The hospital's exports only.",
        ),
        Experiment(
            "continuous",
            "The default answer on pendulum, CartPole and MountainCar, without tuning.",
            quick="Smaller and fewer logs.",
            options=(Option("replications", 50, "Logs per problem."),),
        ),
        Experiment(
            "reacher",
            "Reacher with networks, figure 4: 3,240 runs, and our own answer beside them.",
            quick="A small log and few runs: within five minutes.",
            options=(Option("logs", 20, "Logs for our own answer."),),
        ),
        Experiment(
            "neural",
            "How often the intervals of neural answers cover the truth: 100 logs each of pendulum and Reacher.",
            quick="Two logs per problem.",
        ),
        Experiment(
            "control",
            "Control tasks from 2 to 27 dimensions with trained policies: is the answer sharp enough to decide?",
            quick="Three small tasks, two logs of 1,000 rows each.",
            options=(
                Option("logs", 20, "Logs per task and size."),
                Option("large_logs", 8, "Logs of 100,000 rows per task.", least=0),
                Option("largest", 100_000, "The largest size: 1000, 10000 or 100000."),
                Option("report", 1, "0 leaves out the half of the tasks that is kept for the report.", least=0),
                Option("networks", 1, "0 leaves out the methods that train networks beside the default.", least=0),
            ),
        ),
        Experiment(
            "ranking",
            "Ten policies on one log: are differences covered, is the best one found, are deployments safe?",
            quick="Four logs of each table, no control tasks.",
            options=(
                Option("logs", 50, "Logs per table."),
                Option("control_logs", 50, "Logs per control task.", least=0),
            ),
        ),
        Experiment(
            "shootout",
            "Every estimator on every benchmark, at several sizes and overlaps, and a guide for choosing.",
            quick="Two small logs per cell: within three minutes.",
            options=(Option("large_seeds", 5, "Logs per cell of Taxi and PageRank."),),
        ),
    )
}
