"""Next states that belong to the next episode, or to the row itself."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.statistics.shifted import shifted_checks, shown_after_limits, stale_share
from gradientdice_studies.traps.families import families
from gradientdice_studies.traps.families.shifted import shifted
from problems import known


def walk(rng: np.random.Generator, start: list[float], episodes: int = 60) -> gd.Transitions:
    places = len(start)
    transition = np.zeros((places, 2, places))
    for place in range(places):
        transition[place, 0, max(place - 1, 0)] = transition[place, 1, min(place + 1, places - 1)] = 1
    mdp = gd.mdp.TabularMDP(transition, np.zeros((places, 2)), start)
    return mdp.rollout(np.tile([0.4, 0.6], (places, 1)), episodes, 10, rng)


def continuous(data: gd.Transitions) -> gd.Transitions:
    """The same walk with a place in the plane for each state, and noise that makes each visit its own."""
    rng = np.random.default_rng(1)
    states = np.column_stack([data.states, np.sin(data.states)]) + 0.1 * rng.normal(size=(len(data), 2))
    own = np.column_stack([data.next_states, np.sin(data.next_states)]) + 0.1 * rng.normal(size=(len(data), 2))
    inside = np.append(np.diff(known(data.episodes)) == 0, False)
    own[inside] = np.roll(states, -1, axis=0)[inside]
    return replace(data, states=states, next_states=own)


SPREAD, ONE = [0.5, 0.5] + [0.0] * 8, [1.0] + [0.0] * 9


@pytest.mark.parametrize("start", [SPREAD, ONE])
@pytest.mark.parametrize("seen", [lambda data: data, continuous])
@pytest.mark.parametrize("flagged", [True, False])
def test_a_reset_before_the_last_state_is_found(start, seen, flagged):
    data = seen(walk(np.random.default_rng(0), start))
    share, _ = known(shown_after_limits(data))
    assert share == 0
    share, _ = known(shown_after_limits(shifted(data, flagged=flagged)))
    assert share > 0.4


@pytest.mark.parametrize("seen", [lambda data: data, continuous])
def test_flags_suffice_where_episodes_are_not_logged(seen):
    data = seen(walk(np.random.default_rng(0), SPREAD))
    share, _ = known(shown_after_limits(replace(shifted(data), episodes=None)))
    assert share > 0.4


def test_environments_logged_side_by_side():
    data = shifted(continuous(walk(np.random.default_rng(0), SPREAD)))
    order = np.arange(600).reshape(2, 300).T.ravel()
    fields = ("states", "actions", "rewards", "next_states", "truncated", "episodes")
    mixed = gd.Transitions(**{name: getattr(data, name)[order] for name in fields})
    share, _ = known(shown_after_limits(mixed))
    assert share > 0.9


@pytest.mark.parametrize("seen", [lambda data: data, continuous])
def test_one_run_cut_into_pieces_is_as_it_should_be(seen):
    rng = np.random.default_rng(0)
    mdp = gd.mdp.boyan_chain("continuing")
    run = seen(mdp.rollout(np.full((13, 2), 0.5), 1, 2_000, rng))
    pieces = replace(run, episodes=np.arange(2_000) // 20, truncated=np.arange(2_000) % 20 == 19)
    share, _ = known(shown_after_limits(pieces))
    assert share == 0


def test_next_states_recorded_before_the_step():
    data = continuous(walk(np.random.default_rng(0), SPREAD))
    assert stale_share(data) == 0
    stale = replace(data, next_states=data.states)
    assert known(stale_share(stale)) == 1
    (check, *_) = shifted_checks(stale)
    assert str(check.verdict) == "do not trust" and "before the step" in check.reason
    still = replace(data, states=np.zeros((600, 2)), next_states=np.zeros((600, 2)))
    assert stale_share(still) == 0


def test_the_verdict_says_what_happened_and_discount_0_does_not_care():
    of = families()["walk, reset by itself"]
    case = of.log(np.random.default_rng(0))
    estimate = gd.evaluate(case.data, case.policy, discount=0.95)
    assert str(estimate.verdict) == "do not trust"
    assert any("final_obs" in reason and "first state of the next one" in reason for reason in estimate.reasons)
    myopic = gd.evaluate(case.data, case.policy, discount=0.0)
    assert not any("next episode" in check.name for check in myopic.further_checks)
