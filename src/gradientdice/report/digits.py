"""Numbers as a reader wants them: as many digits as mean something."""

from __future__ import annotations

import math

# Beyond these an exponent is easier to read than a row of digits.
LARGEST, SMALLEST = 1e7, 1e-4


def figure(value: object, digits: int = 3) -> str:
    """A number with so many significant digits: no rounding dust, no exponent where digits will do."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return "" if value is None else str(value)
    if math.isnan(value):
        return ""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if abs(value) < 1e-9:
        return "0"
    if not SMALLEST <= abs(value) < LARGEST:
        return _minus(f"{value:.{digits - 1}e}")
    if isinstance(value, int):
        return _minus(f"{value:,}")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return _minus(text.rstrip("0").rstrip(".") if "." in text else text)


def known_to(value: float, half_width: float | None, *, signed: bool = False) -> str:
    """A number to the second digit of what is not known about it: 0.84213 ± 0.012 is 0.842."""
    sign = "+" if signed and value > 0 else ""
    if half_width is None or not math.isfinite(half_width) or not math.isfinite(value):
        return sign + figure(value, 4)
    smallest = max(half_width, 1e-6 * abs(value))
    if smallest <= 0:
        return sign + figure(value, 4)
    decimals = 1 - math.floor(math.log10(smallest))
    if decimals > 6 or abs(value) >= LARGEST:
        return sign + figure(value, 4)
    text = f"{round(value, decimals):,.{max(0, decimals)}f}"
    if float(text.replace(",", "")) == 0:
        return text.lstrip("-")
    return sign + _minus(text)


def percent(share: float) -> str:
    """A share as a percentage: whole above 10%, with a digit below, and never 0% for what is not nothing."""
    if math.isnan(share):
        return ""
    if 0 < abs(share) < 0.001:
        return "<0.1%"
    return _minus(f"{share:.0%}" if abs(share) >= 0.0995 or share == 0 else f"{share:.1%}")


def _minus(text: str) -> str:
    """With the minus sign that is as wide as a plus."""
    mantissa, exponent, power = text.partition("e")
    return mantissa.replace("-", "−") + (f"×10{_raised(int(power))}" if exponent else "")


def _raised(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
