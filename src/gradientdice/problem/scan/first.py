"""The first pass over a log, for several policies and discounts at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradientdice.log.scanning.passes import Sums
from gradientdice.log.scanning.spill import Spill
from gradientdice.log.scanning.together import Together
from gradientdice.problem.scan.asked import Asked
from gradientdice.problem.scan.behavior import BehaviorPass
from gradientdice.problem.scan.facts import FactsPass

Make = Callable[[Spill | None, float], FactsPass]
ByDiscount = dict[float, Sums]


def first_sums(asked: Asked, passes: Sequence[Make], discounts: Sequence[float]) -> list[ByDiscount]:
    """The sums of some passes by discount, each row of the log read once.

    Only what the behaviour earned depends on the discount: the rest is the same object for all.

    Args:
        asked: the log.
        passes: what makes each of them, from where runs may be written and a discount.
        discounts: at which the behaviour's value is summed.
    """
    first, *further = discounts
    if len(passes) == 1 and not further:
        return [{first: asked.summed(lambda spill: passes[0](spill, first))}]
    works = (*(make(None, first) for make in passes), *(BehaviorPass(discount=other) for other in further))
    sums = asked.summed(lambda spill: Together(spill, passes=works))
    parts = [Together(passes=works).of(number, sums) for number in range(len(works))]
    behaviors = dict(zip(further, parts[len(passes) :], strict=True))
    return [
        {first: own, **{other: _with(own, found) for other, found in behaviors.items()}} for own in parts[: len(passes)]
    ]


def _with(own: Sums, behavior: Sums) -> Sums:
    """The sums with what the behaviour earned at another discount: nothing, where rows without episodes do not say."""
    rest = {name: array for name, array in own.items() if name != "behavior"}
    return {**rest, "behavior": behavior["behavior"]} if "behavior" in behavior else rest
