"""What every estimator owes: one table of tests over all of them, and what each says to logs that lack something."""

import sys
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.estimators.answer import declared
from problems import CONTINUOUS, EVERY, made, random_problem

AVERAGE_ONLY = {name for name, kind in EVERY.items() if kind.average_only}
NO_INTERVAL = {"magic"}


def discount_of(name: str) -> float:
    return 1.0 if name in AVERAGE_ONLY else 0.8


def rollouts(episodes: int = 60, horizon: int = 30):
    mdp, target, _ = random_problem(0)
    return mdp, target, mdp.rollout(0.5 * target + 0.25, episodes, horizon, np.random.default_rng(0))


@pytest.mark.parametrize("name", [*EVERY, *CONTINUOUS])
def test_is_a_frozen_dataclass_with_checked_numbers(name):
    estimator = made(name, 0.9)
    assert is_dataclass(estimator) and hash(estimator) == hash(made(name, 0.9))
    assert getattr(gd, type(estimator).__name__) is type(estimator)
    for bad in (-0.1, 1.1, float("nan"), "0.9"):
        with pytest.raises(gd.InputError, match="discount"):
            replace(made(name, 0.9), discount=bad)
    numbers = [field.name for field in fields(estimator) if isinstance(getattr(estimator, field.name), float)]
    for number in numbers:
        with pytest.raises(gd.InputError, match=number):
            replace(made(name, 0.9), **{number: -1.0})


@pytest.mark.parametrize("name", [*EVERY, *CONTINUOUS])
def test_docstring_names_the_paper(name):
    assert "References:" in (sys.modules[type(made(name, 0.9)).__module__].__doc__ or "")


@pytest.mark.parametrize("name", EVERY)
def test_answers_a_log_of_trajectories(name):
    mdp, target, data = rollouts(400, 40)
    discount = discount_of(name)
    estimate = gd.evaluate(data, gd.TabularPolicy(target), made(name, discount))
    if name == "discounted-cop-td":  # which restarts from the log's own states
        mdp = gd.mdp.TabularMDP(mdp.transition, mdp.reward, np.bincount(data.states) / len(data))
    assert estimate.status.ok
    assert estimate.value == pytest.approx(mdp.value(target, discount), abs=0.06)
    assert (estimate.interval is None) == (name in NO_INTERVAL)
    assert estimate.ratio is not None and estimate.ratio.shape == (len(data),)
    assert np.isfinite(estimate.ratio).all() and f"{estimate.value:.6g}" in str(estimate)
    assert estimate.to_dict()["value"] == estimate.value


@pytest.mark.parametrize("name", EVERY)
def test_the_same_seed_gives_the_same_bits(name):
    _, target, data = rollouts()
    first, second = (
        gd.evaluate(data, gd.TabularPolicy(target), made(name, discount_of(name)), seed=3) for _ in range(2)
    )
    assert first.value == second.value and first.interval == second.interval


# What logs that lack something are told, for each estimator: "ok" is an answer, other words name a refusal below.
REFUSALS = {
    "units": "at least two independent units",
    "folds": "Cross-fitting needs at least 4 independent units",
    "noise": "MAGIC weighs noise against bias over episodes, and the log has one",
    "action": "the policy takes action 1, which the log never contains",
    "behaviour": "needs the probability with which each logged action was taken.*give behavior_log_probs",
    "starts": "A discount below 1 needs initial states",
    "episodes": "needs whole trajectories and the log has no episodes",
    "average": "is for the average reward, discount 1",
    "below": "needs a discount below 1",
    "zero": "At discount 1 DualDICE's answer is a ratio of 0 everywhere",
    "scale": "overflow when they are squared: divide them by a constant",
    "discrete": "needs discrete actions",
    "closed": "closed form",
}
DISCOUNTED = """
                        one-row  one-episode  one-state  no-behaviour  no-episodes  one-action  huge   ended
gradient-dice           units    units        ok         ok            starts       ok          scale  ok
gen-dice                units    units        ok         ok            starts       ok          scale  ok
dual-dice               units    units        ok         ok            starts       ok          scale  ok
lstdq                   units    units        ok         ok            starts       ok          scale  ok
fqe                     units    units        ok         ok            starts       ok          scale  ok
mwl                     units    units        ok         ok            starts       ok          scale  ok
mql                     units    units        ok         ok            starts       ok          scale  ok
regularized-lagrangian  units    units        ok         ok            starts       ok          scale  ok
automatic               units    units        ok         ok            starts       ok          scale  ok
drl                     folds    folds        folds      ok            starts       ok          scale  ok
black-box               average  average      average    average       average      average     scale  average
cop-td                  average  average      average    average       average      average     scale  average
discounted-cop-td       action   units        behaviour  behaviour     ok           action      scale  ok
bch                     action   units        behaviour  behaviour     episodes     action      scale  ok
gem                     action   units        behaviour  behaviour     starts       action      scale  ok
is                      units    units        behaviour  behaviour     episodes     ok          scale  ok
pdis                    units    units        behaviour  behaviour     episodes     ok          scale  ok
wis                     units    units        behaviour  behaviour     episodes     ok          scale  ok
wpdis                   units    units        behaviour  behaviour     episodes     ok          scale  ok
dr                      folds    folds        behaviour  behaviour     episodes     ok          scale  ok
wdr                     folds    folds        behaviour  behaviour     episodes     ok          scale  ok
magic                   noise    noise        behaviour  behaviour     episodes     ok          scale  ok
"""
AVERAGE = """
                        one-row  one-episode  one-state  no-behaviour  no-episodes  one-action  huge   ended
gradient-dice           units    units        ok         ok            ok           ok          scale  ok
gen-dice                units    units        ok         ok            ok           ok          scale  ok
dual-dice               zero     zero         zero       zero          zero         zero        scale  zero
lstdq                   units    units        ok         ok            ok           ok          scale  ok
fqe                     units    units        ok         ok            ok           ok          scale  ok
mwl                     units    units        ok         ok            ok           ok          scale  ok
mql                     units    units        ok         ok            ok           ok          scale  ok
regularized-lagrangian  units    units        ok         ok            ok           ok          scale  ok
automatic               units    units        ok         ok            ok           ok          scale  ok
drl                     folds    folds        folds      ok            ok           ok          scale  ok
black-box               units    units        ok         ok            ok           ok          scale  ok
cop-td                  action   units        behaviour  behaviour     ok           action      scale  ok
discounted-cop-td       action   units        behaviour  behaviour     ok           action      scale  ok
bch                     action   units        behaviour  behaviour     ok           action      scale  ok
gem                     below    below        below      below         below        below       scale  below
is                      below    below        below      below         below        below       scale  below
pdis                    below    below        below      below         below        below       scale  below
wis                     below    below        below      below         below        below       scale  below
wpdis                   below    below        below      below         below        below       scale  below
dr                      below    below        below      below         below        below       scale  below
wdr                     below    below        below      below         below        below       scale  below
magic                   below    below        below      below         below        below       scale  below
"""


def table(text: str) -> dict[tuple[str, str], str]:
    head, *rows = text.strip("\n").splitlines()
    return {
        (row.split()[0], log): cell for row in rows for log, cell in zip(head.split(), row.split()[1:], strict=True)
    }


def declared_refusal(name: str, discount: float, kind: str) -> str | None:
    """The refusal that follows from what an estimator declares."""
    own = declared(made(name, discount))
    if own.discounted_only and discount == 1:
        return "below"
    if own.average_only and discount < 1:
        return "average"
    if own.whole_trajectories and kind == "no-episodes":
        return "episodes"
    return "behaviour" if own.needs_behavior and kind == "no-behaviour" else None


TOLD = {(discount, *key): cell for discount, text in ((0.8, DISCOUNTED), (1.0, AVERAGE))
        for key, cell in table(text).items()}  # fmt: skip
POLICY = np.array([0.3, 0.7])


def lacking(kind: str) -> gd.Transitions:
    data = rollouts()[2]
    match kind:
        case "one-row":
            return gd.Transitions([0], [0], [1.0], [0], episodes=[0], behavior_log_probs=[0.0])
        case "one-episode":
            return rollouts(1, 30)[2]
        case "one-state":
            return gd.Transitions([0] * 6, [0, 1] * 3, [1.0, 0.0] * 3, [0] * 6, episodes=[0, 0, 0, 1, 1, 1])
        case "no-behaviour":
            return replace(data, behavior_log_probs=None)
        case "no-episodes":
            return replace(data, episodes=None)
        case "one-action":
            return replace(data, actions=np.zeros(len(data), dtype=int))
        case "huge":
            return replace(data, rewards=1e200 * data.rewards)
        case "ended":
            ended = np.ones(len(data), dtype=bool)
            return replace(data, terminated=ended, truncated=None, episodes=np.arange(len(data)))
    raise AssertionError(kind)


def what_is_true(kind: str, discount: float, data: gd.Transitions, estimate: gd.Estimate) -> None:
    """The answer to a log that lacks something: near the truth, or not trusted."""
    mdp = rollouts()[0]
    target = np.tile(POLICY, (5, 1))
    logged = np.bincount(data.states, minlength=5) / len(data)
    match kind:
        case "one-state":
            assert estimate.value == pytest.approx(0.3, abs=1e-8)
            assert estimate.verdict is gd.Verdict.DO_NOT_TRUST, "two episodes are too few"
        case "no-behaviour":
            assert estimate.value == pytest.approx(mdp.value(target, discount), abs=0.06)
            assert estimate.verdict is gd.Verdict.TRUST
        case "no-episodes":  # below discount 1 only discounted COP-TD, which restarts from the log's own states
            own = gd.mdp.TabularMDP(mdp.transition, mdp.reward, logged)
            assert estimate.value == pytest.approx(own.value(target, discount), abs=0.06)
        case "one-action":
            assert estimate.verdict is not gd.Verdict.TRUST
        case "ended":  # after one step: at discount 1 the next episode begins, below it nothing follows
            first = float(logged @ mdp.reward @ POLICY)
            value = estimate.value if discount == 1 else estimate.value / (1 - discount)
            assert value == pytest.approx(first, abs=0.02)
        case _:
            raise AssertionError(f"nothing is known of answers to {kind}")


def test_the_tables_have_rows_of_estimators_that_there_are():
    assert {name for _, name, _ in TOLD} <= set(EVERY) and len(TOLD) == 2 * 8 * len({name for _, name, _ in TOLD})


@pytest.mark.parametrize("kind", ["no-behaviour", "no-episodes"])
@pytest.mark.parametrize("discount", [0.8, 1.0])
@pytest.mark.parametrize("name", EVERY)
def test_what_an_estimator_declares_is_what_it_refuses(name, discount, kind):
    """Against the tables; an estimator without rows there is asked."""
    refusal, told = declared_refusal(name, discount, kind), TOLD.get((discount, name, kind))
    if told is not None:
        said = {"zero": "below"}.get(told, told)
        assert refusal == (said if said in ("below", "average", "episodes", "behaviour") else None)
    elif refusal is not None:
        with pytest.raises(gd.InputError, match=REFUSALS[refusal]):
            gd.evaluate(lacking(kind), gd.TabularPolicy(np.tile(POLICY, (5, 1))), made(name, discount))


@pytest.mark.parametrize("name", EVERY)
def test_networks_and_solvers_are_refused_by_those_that_take_none(name):
    _, target, data = rollouts()
    policy, estimator = gd.TabularPolicy(target), made(name, discount_of(name))
    own = declared(estimator)
    if own.uses_functions and not own.takes_networks:
        with pytest.raises(gd.InputError, match="is for linear functions"):
            gd.evaluate(data, policy, estimator, functions=gd.MLP())
    if own.takes_solver:
        assert gd.evaluate(data, policy, estimator, solver=gd.PrimalDual(20, 0.01)).ratio is not None
    else:
        with pytest.raises(gd.InputError, match="takes no solver: leave solver= out"):
            gd.evaluate(data, policy, estimator, solver=gd.ClosedForm())


@pytest.mark.parametrize(("discount", "name", "kind"), TOLD)
def test_a_log_that_lacks_something(discount, name, kind):
    data, told = lacking(kind), TOLD[discount, name, kind]
    policy = gd.TabularPolicy(np.tile(POLICY, (1 if kind in ("one-row", "one-state") else 5, 1)))
    if told == "ok":
        estimate = gd.evaluate(data, policy, made(name, discount))
        assert estimate.status.ok
        what_is_true(kind, discount, data, estimate)
    else:
        with pytest.raises(gd.InputError, match=REFUSALS[told]) as refusal:
            gd.evaluate(data, policy, made(name, discount))
        assert 30 < len(str(refusal.value)) <= 400


DRAWS = {name: "discrete" if kind.needs_behavior else "ok" for name, kind in EVERY.items()}
DRAWS |= {"gen-dice": "closed", "dual-dice": "closed"}


@pytest.mark.parametrize("name", EVERY)
def test_continuous_actions(name):
    """A random walk in the plane, evaluated for the policy that logged it: the mean of its first coordinate is 0."""
    rng = np.random.default_rng(0)
    path, actions = np.cumsum(0.3 * rng.normal(size=(30, 11, 2)), axis=1), rng.normal(size=(300, 1))
    states, following = path[:, :-1].reshape(300, 2), path[:, 1:].reshape(300, 2)
    data = gd.Transitions(states, actions, states[:, 0], following, episodes=np.arange(300) // 10)
    policy = gd.SamplingPolicy(lambda s, g: g.normal(size=(len(s), 1)))
    estimator, functions = made(name, discount_of(name)), gd.RandomFourier(20)
    if DRAWS[name] == "ok":
        estimate = gd.evaluate(data, policy, estimator, functions=functions)
        assert estimate.status.ok and estimate.interval is not None
        assert estimate.interval[0] < 0 < estimate.interval[1]
    else:
        with pytest.raises(gd.InputError, match=REFUSALS[DRAWS[name]]):
            gd.evaluate(data, policy, estimator, functions=functions)


@pytest.mark.parametrize("discount", [0.8, 1.0])
def test_compare_shows_every_estimator_and_says_why_not(discount):
    """Without behaviour and episodes, but with initial states."""
    mdp, target, data = rollouts()
    bare = replace(data, behavior_log_probs=None, episodes=None, initial_states=data.states[::30])
    every = {name: made(name, discount) for name in EVERY}
    rows = gd.compare(bare, gd.TabularPolicy(target), list(every.values())).to_dict("records")
    assert len(rows) == len(every) + 1, "and one for the cross-fitted answer"
    assert [row["choice"] for row in rows].count("use this") == 1
    notes = {row["estimator"]: row["note"] for row in rows}
    answered = {
        name
        for name, own in {name: declared(estimator) for name, estimator in every.items()}.items()
        if not (own.needs_behavior or own.whole_trajectories)
        and not (own.discounted_only if discount == 1 else own.average_only)
    }
    assert {name for name, estimator in every.items() if notes[repr(estimator)] == ""} == answered
    for row in rows:
        if row["note"] == "":
            assert row["value"] == pytest.approx(mdp.value(target, discount), abs=0.06)
        else:
            assert row["note"].startswith("not applicable: ") and np.isnan(row["value"])
