"""Places by hashing are those of a dictionary, also where many numbers want one slot."""

import numpy as np
import pytest

from gradientdice.problem.scan import hashed
from gradientdice.problem.scan.hashed import HashedPlaces


@pytest.mark.parametrize("high", [50, 10**5, 2**62])
@pytest.mark.parametrize("spread", [None, np.uint64(0), np.uint64(1 << 60)], ids=["usual", "one slot", "few slots"])
def test_the_places_of_a_dictionary(monkeypatch, high, spread):
    if spread is not None:
        monkeypatch.setattr(hashed, "SPREAD", spread)
    monkeypatch.setattr(hashed, "FEWEST_BITS", 2)
    rng, places, known = np.random.default_rng(0), HashedPlaces(), {}
    for size in (1, 3, 40, 200):
        numbers = np.unique(rng.integers(0, high, size=size))
        new = np.array([number for number in rng.permutation(numbers) if int(number) not in known], dtype=np.int64)
        places.append(new)
        known.update({int(number): len(known) + k for k, number in enumerate(new)})
        asked = rng.permutation(np.concatenate([rng.integers(0, high, size=100), *[list(known)] * 2]).astype(np.int64))
        np.testing.assert_array_equal(places.find(asked), [known.get(int(number), -1) for number in asked])


def test_no_numbers():
    none = np.zeros(0, dtype=np.int64)
    places = HashedPlaces()
    places.append(none)
    assert len(places.find(none)) == 0
