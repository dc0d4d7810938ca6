"""Counts of cells are those of a dictionary, whatever the size of the table and however many rewards there are."""

from collections import Counter

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.problem.scan import cells
from gradientdice.problem.scan.cell_counts import SLOTS, CellCounter, merged_cells, usual_rows
from gradientdice.problem.scan.cells import CellCodes

TABLE = gd.Tabular(5, 3)
CODES = CellCodes(TABLE)


def rows(seed: int, rewards: int, size: int = 300) -> gd.Transitions:
    rng = np.random.default_rng(seed)
    return gd.Transitions(
        rng.integers(0, 5, size=size),
        rng.integers(0, 3, size=size),
        rng.integers(0, rewards, size=size) / 4,
        rng.integers(0, 5, size=size),
        terminated=rng.random(size) < 0.2,
    )


def counted(*parts: gd.Transitions) -> dict[str, np.ndarray]:
    counter = CellCounter(CODES)
    for part in parts:
        counter.add(part)
    return counter.sums()


def by_hand(*parts: gd.Transitions) -> Counter:
    found: Counter = Counter()
    for data in parts:
        for s, a, r, t, end in zip(data.states, data.actions, data.rewards, data.next_states, data.ended, strict=True):
            found[(int(s), int(a), None if end else int(t), float(r))] += 1
    return found


def as_dictionary(sums: dict[str, np.ndarray]) -> Counter:
    states, actions, following, ended = CODES.parts(sums["codes"])
    found: Counter = Counter()
    for cell, slot in zip(*np.nonzero(sums["slot_rows"]), strict=True):
        key = (int(states[cell]), int(actions[cell]), None if ended[cell] else int(following[cell]))
        found[(*key, float(sums["slot_reward"][cell, slot]))] += int(sums["slot_rows"][cell, slot])
    return found


@pytest.fixture(params=["list", "hashed"])
def place(request, monkeypatch):
    """Both ways to find a cell's place."""
    if request.param == "hashed":
        monkeypatch.setattr(cells, "LARGEST_LIST", 0)


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("rewards", [1, 2, SLOTS])
def test_few_rewards_are_counted_one_by_one(rewards):
    first, second, third = (rows(seed, rewards) for seed in range(3))
    expected = by_hand(first, second, third)
    assert as_dictionary(counted(first, second, third)) == expected
    assert as_dictionary(merged_cells(counted(first), counted(second, third))) == expected


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_many_rewards(weighted):
    """Beyond the slots, rows, weights and rewards of a cell still add up."""
    parts = [rows(seed, count) for seed, count in enumerate((2, 40, 3))]
    if weighted:
        rng = np.random.default_rng(9)
        parts = [gd.Transitions(*_columns(part), terminated=part.terminated, weights=rng.random(300)) for part in parts]
    for sums in (counted(*parts), merged_cells(counted(*parts[:1]), counted(*parts[1:]))):
        codes = np.concatenate([CODES.of(part) for part in parts])
        weights = np.concatenate([part.row_weights for part in parts])
        rewards = np.concatenate([part.rewards for part in parts])
        for k, code in enumerate(sums["codes"]):
            here = codes == code
            assert sums["cell_rows"][k] == here.sum()
            np.testing.assert_allclose(sums["cell_weight"][k], weights[here].sum(), rtol=1e-13)
            np.testing.assert_allclose(sums["cell_reward"][k], weights[here] @ rewards[here], rtol=1e-13)
        np.testing.assert_array_equal(sums["codes"], np.unique(codes))


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("rewards", [(1, 3), (3, 1), (2, 2), (SLOTS, 3), (4, SLOTS)])
def test_parts_with_other_rewards_merge_in_any_order(rewards):
    """Slots of the two sides differ in number and in order, and cells are on one side only."""
    first, second = (rows(seed, count, size=60) for seed, count in enumerate(rewards))
    backwards = gd.Transitions(*(column[::-1] for column in _columns(second)), terminated=second.terminated[::-1])  # pyright: ignore[reportOptionalSubscript]
    for left, right in ((first, second), (second, first), (first, backwards)):
        merged = merged_cells(counted(left), counted(right))
        assert as_dictionary(merged) == by_hand(first, second)
        assert np.isnan(merged["slot_reward"][merged["slot_rows"] == 0]).all()


def test_only_slots_that_are_used_are_kept():
    assert counted(rows(0, 2))["slot_rows"].shape[1] == 2
    assert counted(rows(0, 40))["slot_rows"].shape[1] == SLOTS


def test_the_usual_outcome_of_a_pair():
    data = gd.Transitions([0, 0, 0, 1], [1, 1, 1, 0], [1.0, 1.0, 2.0, 0.0], [2, 2, 2, 3])
    rows_of, usual = usual_rows(np.array([0, 1]), counted(data))
    np.testing.assert_array_equal(rows_of, [3, 1])
    np.testing.assert_array_equal(usual, [2, 1])


@pytest.mark.parametrize(
    ("changed", "named"), [({"states": [5]}, "states"), ({"actions": [3]}, "actions"), ({"next_states": [-1]}, "next")]
)
def test_what_lies_outside_the_table_is_named(changed, named):
    data = {"states": [0], "actions": [0], "rewards": [0.0], "next_states": [0], **changed}
    with pytest.raises(gd.InputError, match=named):
        CODES.of(gd.Transitions(**data))


def test_what_follows_an_end_may_be_anything():
    data = gd.Transitions([1, 1], [0, 0], [0.0, 0.0], [99, -7], terminated=[True, True])
    assert len(np.unique(CODES.of(data))) == 1


def _columns(data: gd.Transitions) -> tuple[np.ndarray, ...]:
    return data.states, data.actions, data.rewards, data.next_states
