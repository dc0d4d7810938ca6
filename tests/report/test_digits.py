import math

import pytest

from gradientdice.report.digits import figure, known_to, percent


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1e-12, "0"),
        (0.123456, "0.123"),
        (2.5, "2.5"),
        (2532.4, "2,532"),
        (-0.0457, "−0.0457"),
        (12_345, "12,345"),
        (0.000012, "1.20×10⁻⁵"),
        (3.4e15, "3.40×10¹⁵"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
        (math.nan, ""),
        (None, ""),
        ("word", "word"),
    ],
)
def test_a_figure_has_three_digits(value, text):
    assert figure(value) == text


@pytest.mark.parametrize(
    ("value", "half", "text"),
    [
        (0.84213, 0.0123, "0.842"),
        (4.3178, 0.105, "4.32"),
        (-210.4, 140.0, "−210"),
        (12345.6, 1800.0, "12,300"),
        (-0.0004, 0.05, "0.000"),
        (0.5, 0.0, "0.5"),
        (0.5, None, "0.5"),
        (0.0, 0.0, "0"),
        (1.5, math.nan, "1.5"),
    ],
)
def test_a_value_has_the_digits_that_are_known(value, half, text):
    assert known_to(value, half) == text


def test_a_difference_has_its_sign():
    assert known_to(1.902, 0.37, signed=True) == "+1.90"
    assert known_to(-1.902, 0.37, signed=True) == "−1.90"


def test_shares():
    assert [percent(share) for share in (0, 0.0004, 0.012, 0.5, 1, -0.02)] == [
        "0%",
        "<0.1%",
        "1.2%",
        "50%",
        "100%",
        "−2.0%",
    ]
