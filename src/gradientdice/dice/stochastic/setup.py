"""A problem as what the learner takes: a function class, a source of minibatches and what the curve records."""

from __future__ import annotations

from typing import NamedTuple

from gradientdice.dice.stochastic.feed import Feed
from gradientdice.dice.stochastic.function_class import FunctionClass
from gradientdice.dice.stochastic.linear import LinearClass
from gradientdice.dice.stochastic.network_source import NetworkSource
from gradientdice.dice.stochastic.networks import NetworkClass
from gradientdice.dice.stochastic.recorders import LogMeans, Recorder
from gradientdice.dice.stochastic.sources import LogSource, Source
from gradientdice.functions.mlp import MLP
from gradientdice.problem.inputs import NetworkInputs
from gradientdice.problem.problem import Problem


class Setup(NamedTuple):
    """All that a run needs beside its estimator, solver and seed."""

    functions: FunctionClass
    source: Source | Feed
    recorder: Recorder


def log_setup(problem: Problem, discount: float) -> Setup:
    """A log at a discount: at 1 ended episodes restart, below 1 all discounts see the same log."""
    if isinstance(problem.functions, MLP):
        return network_setup(problem.functions, problem.inputs, discount)
    design = problem.design
    source = LogSource.create(design, discount)
    return Setup(LinearClass(source.num_features), source, LogMeans.of_design(design, source.current))


def network_setup(functions: MLP, inputs: NetworkInputs, discount: float) -> Setup:
    """The same from the inputs of networks, which may be those of some folds."""
    source = NetworkSource.create(inputs, discount)
    return Setup(NetworkClass(functions, source.current.shape[1]), source, LogMeans.of_source(source))


def has_ends(problem: Problem) -> bool:
    """Whether the log at discount 1, where ended episodes restart, differs from that below 1."""
    return problem.inputs.absorbing if isinstance(problem.functions, MLP) else problem.design.absorbing
