"""Work in threads beside: results come in order, errors come here, and no more is made than there is memory for."""

import threading
import time

import pytest

import gradientdice as gd
from gradientdice.problem.scan.beside import for_each_beside


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_results_come_in_order(threads):
    def use(number):
        time.sleep(0.002 * (number % 3 == 0))  # later ones are done before earlier ones
        return number**2

    taken = []
    for_each_beside(range(20), use, taken.append, threads)
    assert taken == [number**2 for number in range(20)]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_memory_of_one_more_than_the_threads_is_enough(threads):
    """When one is made, the one so many before it is no longer in use."""
    in_use, lock = set(), threading.Lock()

    def made():
        for number in range(30):
            with lock:
                assert number - (threads + 1) not in in_use
                in_use.add(number)
            yield number

    def use(number):
        time.sleep(0.001)
        with lock:
            in_use.remove(number)

    for_each_beside(made(), use, lambda _: None, threads)
    assert not in_use


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_an_error_beside_is_raised_here(threads):
    def bad(one):
        raise gd.InputError("no")

    with pytest.raises(gd.InputError, match="no"):
        for_each_beside([1, 2], bad, lambda _: None, threads)


def test_an_error_of_what_is_made_is_raised_here():
    def made():
        yield 1
        raise gd.InputError("no")

    with pytest.raises(gd.InputError, match="no"):
        for_each_beside(made(), lambda one: one, lambda _: None, 2)
