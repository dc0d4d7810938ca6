"""The learner's loop: blocks of updates, after each of which the last finite parameters are kept and measured.

The code is that of the runs of one seed, whose axis, if there is one, is the last of every array; `programs` maps it
over seeds. Random numbers depend on the seed and the step alone, so that a run that goes on from a checkpoint has the
same bits as one that was never stopped.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from gradientdice.dice.saddle import SaddleObjective
from gradientdice.dice.stochastic.binding import bind, traced_numbers
from gradientdice.dice.stochastic.function_class import Players
from gradientdice.dice.stochastic.pieces import scan_steps
from gradientdice.dice.stochastic.plan import Plan
from gradientdice.dice.stochastic.recorders import Recorder
from gradientdice.dice.stochastic.sources import RowSource, Source
from gradientdice.dice.stochastic.update import Iterate, first_iterate, update

# A parameter beyond this has left every problem's range; squares of it still fit in float32.
LARGEST = 1e15


class Runs(NamedTuple):
    """Which runs: the numbers of their estimators and schedules by name, and their seed."""

    numbers: dict[str, Any]
    seed: Any


class Kept(NamedTuple):
    """What is kept of a run between blocks: its answer so far."""

    finite: Players  # the last ones that were all finite: the answer of a run that diverged later
    diverged_at: Any  # −1: not


class State(NamedTuple):
    """All that runs carry from one block to the next."""

    iterate: Iterate
    kept: Kept


def start(plan: Plan, shape: tuple[int, ...], seed: Any) -> State:
    """The state before the first update; `shape` is () for one run, (runs,) for several."""
    players = plan.functions.start(seed, shape)
    return State(first_iterate(plan, players), Kept(players, jnp.full(shape, -1)))


def advance(plan: Plan, length: int, source: Source, first: Any, runs: Runs, state: State) -> State:
    """A block of updates: `length` of them from step `first` on."""
    estimator = _bound(plan.estimator, runs)
    schedule = bind(plan.schedule, {name: runs.numbers[name] for name in vars(plan.schedule)})

    def step(iterate: Iterate, inputs: tuple[Any, Any]) -> tuple[Iterate, None]:
        time, drawn = inputs
        return update(plan, estimator, runs.numbers, source.batch(drawn), iterate, schedule.at(time)), None

    size = source.at_once(length)
    iterate = scan_steps(
        step,
        state.iterate,
        lambda start: source.draw(runs.seed, start, size, plan.batch_size),
        first,
        (length, size),
    )
    current = iterate.players if iterate.average is None else iterate.average.mean
    return State(iterate, _keep(state.kept, current, first + length))


def record(plan: Plan, chunk: int, recorder: Recorder, runs: Runs, kept: Kept) -> Any:
    """What the curve shows of a state, (figures, *runs): infinite for runs that have diverged."""
    figures = recorder.measure(plan.functions, _bound(plan.estimator, runs), kept.finite.ratio, chunk)
    return jnp.where(kept.diverged_at < 0, figures, jnp.inf)


def replay(plan: Plan, source: RowSource, seed: int) -> Any:
    """The numbers that a run drew from its source, (steps · batch_size, 3): the same samples for another solver."""
    whole, rest = divmod(plan.steps, plan.record_every)
    starts = jnp.arange(whole) * plan.record_every
    draw = jax.vmap(lambda first: source.draw(seed, first, plan.record_every, plan.batch_size))
    drawn = draw(starts).reshape(-1, 3)
    if rest == 0:
        return drawn
    last = source.draw(seed, whole * plan.record_every, rest, plan.batch_size)
    return jnp.concatenate([drawn, last.reshape(-1, 3)])


def _bound(estimator: SaddleObjective, runs: Runs) -> SaddleObjective:
    """The estimator with the runs' numbers in place of its own."""
    return bind(estimator, {name: runs.numbers[name] for name in traced_numbers(estimator)})


def _keep(kept: Kept, current: Players, step: Any) -> Kept:
    """The current players where they are healthy; the last healthy ones of runs that have diverged."""
    alive = kept.diverged_at < 0
    healthy = _healthy(current, jnp.ndim(alive)) & alive
    finite = jax.tree.map(lambda new, old: jnp.where(healthy, new, old), current, kept.finite)
    return Kept(finite, jnp.where(alive & ~healthy, step, kept.diverged_at))


def _healthy(players: Players, run_axes: int) -> Any:
    """Which runs have only finite parameters of a sane size; a comparison with NaN is false."""
    leaves = jax.tree.leaves(players)
    checks = [jnp.all(jnp.abs(leaf) < LARGEST, axis=tuple(range(leaf.ndim - run_axes))) for leaf in leaves]
    return jnp.all(jnp.stack(checks), axis=0)
