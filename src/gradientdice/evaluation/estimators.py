"""What may be given as an estimator: one of the library's, or any class with the protocol."""

from __future__ import annotations

from gradientdice.base.errors import InputError
from gradientdice.default.automatic import Automatic
from gradientdice.dice.saddle import SaddleObjective
from gradientdice.estimators.answer import Estimator
from gradientdice.estimators.saddle.estimator import Answering


def chosen_estimator(estimator: object, discount: float | None) -> Estimator:
    """The estimator given, else the default at this discount."""
    if estimator is None:
        if discount is None:
            raise InputError("Give a discount (1 for the average reward), or an estimator that has one.")
        return Automatic(discount)
    known = as_estimator(estimator)
    if discount is not None and discount != known.discount:
        raise InputError(f"discount={discount:g} contradicts the estimator's {known.discount:g}: give one of them.")
    return known


def as_estimator(given: object) -> Estimator:
    """An object as an estimator: it has `answer`, or the saddle objective from which `answer` follows.

    Raises:
        InputError: if it has neither.
    """
    if isinstance(given, type):
        raise InputError(f"estimator must be made with its discount: {given.__name__}(0.9), not the class itself.")
    if isinstance(given, Estimator):
        return given
    if isinstance(given, SaddleObjective):
        return Answering(given)
    raise InputError(
        "estimator must be one of gradientdice.ESTIMATORS with its discount, such as GradientDICE(0.9), or "
        f"an object with discount and answer(problem, solver), not {given!r:.60}."
    )
