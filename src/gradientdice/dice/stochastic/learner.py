"""The learner: one update for any objective and function class, its loop, and its compiled programs.

Both players move at once, on the gradients at the same point. The gradient of the objective at the functions' values is
written once. A function class then carries it to the parameters: plain steps are added where a minibatch has features;
optimisers and clipping need the whole gradient. After each block of updates the last finite parameters are kept and
measured.

The code is that of the runs of one seed, whose axis, if there is one, is the last of every array; `Compiled` maps it
over seeds. Random numbers depend on the seed and the step alone, so that a run that goes on from a checkpoint has the
same bits as one that was never stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gradientdice.base.compiling import CPU_OPTIONS, PROGRAMS
from gradientdice.base.devices import advances_together
from gradientdice.dice.saddle import SaddleObjective, Terms
from gradientdice.dice.stochastic.functions import Add, Players, Values
from gradientdice.dice.stochastic.plan import Average, Plan, bind, traced_numbers
from gradientdice.dice.stochastic.setup import Recorder
from gradientdice.dice.stochastic.sources import RowSource, Source, scan_steps

# A parameter beyond this has left every problem's range; squares of it still fit in float32.
LARGEST = 1e15


class Iterate(NamedTuple):
    """State that one update hands to the next; parts that a plan does not use are None."""

    players: Players
    optimizer: Any = None
    average: Average | None = None
    target: Any = None


class Slopes(NamedTuple):
    """The gradient of the mean objective at the functions' values and at η."""

    values: Values
    norm_multiplier: Any


def first_iterate(plan: Plan, players: Players) -> Iterate:
    """The iterate before any update."""
    optimizer = None if plan.optimizer is None else _each_run(plan.optimizer.init, players)(players)
    average = None if plan.averaging is None else plan.averaging.start(players)
    return Iterate(players, optimizer, average, None if plan.target_rate is None else players.critic)


def update(
    plan: Plan, estimator: SaddleObjective, numbers: dict[str, Any], batch: Any, now: Iterate, rate: Any
) -> Iterate:
    """One step of both players on one minibatch.

    Args:
        plan: the static part.
        estimator: with the runs' numbers in place.
        numbers: the ridge and, of a projected run, radii and units of steps.
        batch: from the source.
        now: the iterate to move.
        rate: the learning rate of this step.
    """
    players, optimizer, average, target = now
    values, add = plan.functions.at(players, batch)
    if plan.target_rate is not None:
        values = values._replace(next_critic=plan.functions.next_values(target, batch))
    slopes = _slopes(estimator, values, players.norm_multiplier)
    if plan.target_rate is not None:
        held = jnp.zeros_like(slopes.values.next_critic)
        slopes = slopes._replace(values=slopes.values._replace(next_critic=held))
    if plan.plain:
        players = _plain_step(plan, numbers, players, slopes, add, rate)
    else:
        descent = _descent(plan, numbers, players, slopes, add)
        move, optimizer = _each_run(lambda *given: _move(plan, *given), players)(descent, optimizer, players)
        players = jax.tree.map(lambda p, m: p + rate * m, players, move)
    if plan.projected:
        players = _project(players, numbers)
    if plan.averaging is not None and average is not None:
        average = plan.averaging.include(average, players, rate)
    if plan.target_rate is not None:
        share = plan.target_rate
        target = jax.tree.map(lambda t, p: (1 - share) * t + share * p, target, players.critic)
    return Iterate(players, optimizer, average, target)


def _slopes(estimator: SaddleObjective, values: Values, norm_multiplier: Any) -> Slopes:
    size = len(values.raw)

    def mean_objective(values: Values, norm_multiplier: Any) -> Any:
        raw, critic, next_critic, initial_critic = values
        terms = Terms(estimator.ratio(raw), critic, next_critic, initial_critic, norm_multiplier)
        # The gradient of a sum over runs is each run's own gradient.
        return jnp.sum(estimator.objective(terms)) / size

    return Slopes(*jax.grad(mean_objective, argnums=(0, 1))(values, norm_multiplier))


def _plain_step(plan: Plan, numbers: dict[str, Any], players: Players, slopes: Slopes, add: Add, rate: Any) -> Players:
    """The players moved along their gradients by the rate."""
    ratio_rate = critic_rate = rate
    if plan.projected:
        # Algorithm 1 measures each player's steps in units of its own ball.
        ratio_rate, critic_rate = rate * numbers["ratio_step"], rate * numbers["critic_step"]
    ratio = players.ratio
    if plan.with_ridge:
        ratio = jax.tree.map(lambda p: p * (1 - ratio_rate * numbers["ridge"]), ratio)
    minimises = plan.estimator.ratio_minimises
    ratio_move, critic_move = (-ratio_rate, critic_rate) if minimises else (ratio_rate, -critic_rate)
    raw, *others = slopes.values
    onto = Players(ratio, players.critic, players.norm_multiplier + critic_move * slopes.norm_multiplier)
    return add(onto, Values(ratio_move * raw, *(critic_move * slope for slope in others)))


def _descent(plan: Plan, numbers: dict[str, Any], players: Players, slopes: Slopes, add: Add) -> Players:
    """The direction that each player wants to leave: its gradient, or minus that for the one who maximises."""
    sign = 1.0 if plan.estimator.ratio_minimises else -1.0
    raw, *others = slopes.values
    zeros = jax.tree.map(jnp.zeros_like, players)
    descent = add(zeros, Values(sign * raw, *(-sign * slope for slope in others)))
    ratio = descent.ratio
    if plan.with_ridge:
        ratio = jax.tree.map(lambda g, p: g + numbers["ridge"] * p, ratio, players.ratio)
    return Players(ratio, descent.critic, -sign * slopes.norm_multiplier)


def _move(plan: Plan, descent: Players, optimizer: Any, players: Players) -> tuple[Players, Any]:
    """One run's clipped gradient through its optimiser; plain steps if there is none."""
    if plan.clip_norm is not None:
        length = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(descent)))
        shrink = jnp.minimum(1.0, plan.clip_norm / jnp.maximum(length, 1e-30))
        descent = jax.tree.map(lambda g: g * shrink, descent)
    if plan.optimizer is None:
        return jax.tree.map(jnp.negative, descent), None
    move: Any
    move, optimizer = plan.optimizer.update(descent, optimizer, players)
    return move, optimizer


def _each_run(function: Callable[..., Any], players: Players) -> Callable[..., Any]:
    """A function of one run for players that carry several as their last axis: norms must not mix them."""
    several = jnp.ndim(players.norm_multiplier) > 0
    return jax.vmap(function, in_axes=-1, out_axes=-1) if several else function


def _project(players: Players, numbers: dict[str, Any]) -> Players:
    """W on the ball of radius ratio_radius, y = [κ; η] on that of radius critic_radius."""
    ratio, critic, norm_multiplier = players
    shrink_ratio = _shrink(jnp.sum(ratio**2, axis=0), numbers["ratio_radius"])
    shrink_critic = _shrink(jnp.sum(critic**2, axis=0) + norm_multiplier**2, numbers["critic_radius"])
    return Players(ratio * shrink_ratio, critic * shrink_critic, norm_multiplier * shrink_critic)


def _shrink(squared_norm: Any, radius: Any) -> Any:
    return jnp.minimum(1.0, radius * lax.rsqrt(jnp.maximum(squared_norm, 1e-30)))


class Runs(NamedTuple):
    """Numbers of some runs' estimators and schedules by name, and their seed."""

    numbers: dict[str, Any]
    seed: Any


class Kept(NamedTuple):
    """A run's answer so far, kept between blocks."""

    finite: Players  # the last ones that were all finite: the answer of a run that diverged later
    diverged_at: Any  # −1: not


class State(NamedTuple):
    """State that runs carry from one block to the next."""

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
    """The curve's figures of a state, (figures, *runs): infinite for runs that have diverged."""
    figures = recorder.measure(plan.functions, _bound(plan.estimator, runs), kept.finite.ratio, chunk)
    return jnp.where(kept.diverged_at < 0, figures, jnp.inf)


def replay(plan: Plan, source: RowSource, seed: int) -> Any:
    """Row numbers that a run drew from its source, (steps · batch_size, 3), so that another solver can use them."""
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
    """True for runs with only finite parameters of a sane size; a comparison with NaN is false."""
    leaves = jax.tree.leaves(players)
    checks = [jnp.all(jnp.abs(leaf) < LARGEST, axis=tuple(range(leaf.ndim - run_axes))) for leaf in leaves]
    return jnp.all(jnp.stack(checks), axis=0)


class Material(NamedTuple):
    """Arguments of every call of a part's programs.

    Attributes:
        source: where minibatches come from.
        recorder: makes the curve's figures.
        runs: the numbers and seeds, with a first axis over seeds, or over runs if each has draws of its own. The
            numbers of runs that share a seed's draws have no such axis: they are the same for all seeds.
    """

    source: Source
    recorder: Recorder
    runs: Runs


class Compiled:
    """The programs of a plan on one part's material. States and records have a first axis as the seeds have."""

    def __init__(self, plan: Plan, material: Material, chunk: int) -> None:
        self._plan, self._material, self._chunk = plan, material, chunk
        self._key = plan.key()
        self._ready: dict[Any, Any] = {}

    def given(self, source: Source) -> Compiled:
        """The programs on another source, of any shape."""
        return Compiled(self._plan, self._material._replace(source=source), self._chunk)

    def start(self, shape: tuple[int, ...], seeds: np.ndarray) -> State:
        """The first states in NumPy, drawn on a CPU if there is one: the same seed then starts alike everywhere."""
        try:
            place = jax.local_devices(backend="cpu")[0]
        except RuntimeError:
            place = None
        plan = self._plan
        # It runs once, in less time than optimising it would take.
        options: Any = None if place is None else CPU_OPTIONS
        with jax.default_device(place):
            program = PROGRAMS.get(
                ("start", shape, plan.functions, plan.optimizer, plan.averaging, plan.target_rate),
                (seeds,),
                lambda: jax.jit(jax.vmap(partial(start, plan, shape)), compiler_options=options),
            )
            return jax.tree.map(np.asarray, program(seeds))

    def record(self, state: State) -> Any:
        """The curve's figures of the states: (seeds, figures, …)."""
        return self._call(("record", self._chunk), (self._material, state.kept), lambda: jax.jit(self._measure))

    def text(self, state: State) -> str:
        """One update, with every number in it, in words that are the same in another process.

        Functions, such as those of an optimiser, have no words of their own; what they compute has.
        """
        arguments = (self._material, state, np.int32(0))
        first = jax.jit(partial(start, self._plan, ())).lower(np.uint32(0))
        return first.as_text() + jax.jit(partial(self._block, 1)).lower(*arguments).as_text()

    def advance(self, blocks: list[tuple[int, int]], most: int, state: State) -> tuple[State, Any]:
        """Some blocks of updates of the same length, at most `most`. The states given are used up.

        Returns:
            The new states, and the curve's figures after each block: (blocks, seeds, figures, …).
        """
        (first, length), count = blocks[0], len(blocks)
        if jax.default_backend() == "cpu":
            arguments = (self._material, state, np.int32(first), np.int32(count))
            state, records = self._call(
                ("blocks", self._chunk, length, most), arguments, lambda: self._fused(length, most)
            )
            return state, np.asarray(records)[:count]
        # On a GPU, generating and timing matrix products for small batches takes longer than a whole grid, and gains
        # nothing: the library's serve. The records, in which most of the time goes, get generated ones.
        options: Any = {"xla_gpu_enable_triton_gemm": False}
        records = []
        for first, _ in blocks:
            state = self._call(
                ("block", length),
                (self._material, state, np.int32(first)),
                lambda: jax.jit(partial(self._block, length), donate_argnums=1, compiler_options=options),
            )
            records.append(self.record(state))
        return state, records

    def _fused(self, length: int, most: int) -> Any:
        """Several blocks and their records as one program: on a CPU a call takes as long as many small updates."""

        def blocks(material: Material, state: State, first: Any, count: Any) -> tuple[State, Any]:
            def block(number: Any, carry: tuple[State, Any]) -> tuple[State, Any]:
                state, records = carry
                state = self._block(length, material, state, first + number * length)
                return state, records.at[number].set(self._measure(material, state.kept))

            like = jax.eval_shape(self._measure, material, state.kept)
            return lax.fori_loop(0, count, block, (state, jnp.zeros((most, *like.shape), like.dtype)))

        quick = self._plan.steps <= self._plan.functions.quick_steps
        options: Any = CPU_OPTIONS if quick else None
        return jax.jit(blocks, donate_argnums=1, compiler_options=options)

    def _block(self, length: int, material: Material, state: State, first: Any) -> State:
        source, _, runs = material
        return self._map(partial(advance, self._plan, length, source, first), runs, state)

    def _measure(self, material: Material, kept: Kept) -> Any:
        _, recorder, runs = material
        return self._map(partial(record, self._plan, self._chunk, recorder), runs, kept)

    def _map(self, one: Callable[[Runs, Any], Any], runs: Runs, state: Any) -> Any:
        if self._plan.functions.shares_draws:
            return jax.vmap(lambda seed, state: one(Runs(runs.numbers, seed), state))(runs.seed, state)
        return jax.vmap(one)(runs, state) if advances_together() else lax.map(lambda pair: one(*pair), (runs, state))

    def _call(self, what: tuple[Any, ...], arguments: tuple[Any, ...], build: Callable[[], Any]) -> Any:
        # All calls have arguments of the same shapes: a program is looked for once.
        if what not in self._ready:
            self._ready[what] = PROGRAMS.get((what, self._key), arguments, build)
        return self._ready[what](*arguments)
