"""Reading ahead: order, errors and ends are those of the iterator itself."""

import threading
import time

import pytest

from gradientdice.log.scanning.ahead import read_ahead


def readers() -> int:
    return sum(thread.name == "reading ahead" for thread in threading.enumerate())


def test_all_items_come_in_their_order():
    assert list(read_ahead(iter(range(100)))) == list(range(100))
    assert list(read_ahead(iter([]))) == []


def test_the_next_item_is_made_while_one_is_used():
    made = []

    def items():
        for number in range(5):
            made.append(number)
            yield number

    stream = read_ahead(items())
    assert next(stream) == 0
    deadline = time.monotonic() + 5
    while len(made) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    # One waits, and one more is ready to be put down.
    assert made == [0, 1, 2]
    assert list(stream) == [1, 2, 3, 4]


def test_an_error_comes_in_its_place():
    def items():
        yield 1
        raise ValueError("torn page")

    stream = read_ahead(items())
    assert next(stream) == 1
    with pytest.raises(ValueError, match="torn page"):
        next(stream)
    assert readers() == 0


def test_a_reader_that_is_left_ends():
    stream = read_ahead(iter(range(10**9)))
    next(stream)
    stream.close()
    assert readers() == 0
