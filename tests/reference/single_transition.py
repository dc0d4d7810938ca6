"""The estimators that solve one system over single transitions, and where each applies."""

import pytest

import gradientdice as gd

Lagrangian = gd.RegularizedLagrangian


EVERY = [
    gd.MWL,
    gd.MQL,
    gd.FQE,
    gd.BlackBox,
    Lagrangian,
    Lagrangian.best_dice,
    Lagrangian.gen_dice,
    Lagrangian.gradient_dice,
    Lagrangian.dual_dice,
    Lagrangian.mwl,
    Lagrangian.mql,
]


DISCOUNTED_ONLY = (Lagrangian.dual_dice, Lagrangian.mwl, Lagrangian.mql)


NAMES = [f"{getattr(make, '__self__', make).__name__}.{make.__name__}" for make in EVERY]


# One with influence values that are its own for each of the ways to solve.
MAIN = [gd.MWL, gd.MQL, gd.FQE, gd.BlackBox, Lagrangian.best_dice, Lagrangian.gradient_dice]


def applies(make, discount):
    return not (make is gd.BlackBox and discount < 1 or make in DISCOUNTED_ONLY and discount == 1)


def cases(makes, discounts):
    return [
        pytest.param(make, discount, id=f"{NAMES[EVERY.index(make)]}-{discount:g}")
        for make in makes
        for discount in discounts
        if applies(make, discount)
    ]


def tolerance(make):
    """The black-box estimator's ridge biases it by about its size."""
    return 1e-8 if make is gd.BlackBox else 1e-9
