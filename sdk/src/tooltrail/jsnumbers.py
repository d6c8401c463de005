"""Writes numbers as JavaScript does, for texts and digests shared with Node programs.

Owns number formatting only. Callers quote text and order members.
"""

import math


def js_number(value: float) -> str:
    """Write an int or float as JavaScript's `String(value)` does: `1.0` → `1`, `1e21` → `1e+21`.

    Integers are converted to doubles first, as JavaScript has no other numbers: beyond 2^53
    they lose precision, beyond 1.8e308 they become `Infinity`. `-0.0` gives `0`.
    Source: ECMA-262, Number::toString.
    """
    if isinstance(value, int):
        if -(2**53) <= value <= 2**53:
            return str(int(value))
        try:
            value = float(value)
        except OverflowError:
            return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    # Both languages print the shortest digits that read back as the same double. They differ
    # only in when they switch to an exponent, so the digits are laid out again here.
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    point = len(whole) + int(exponent or 0)  # the value is 0.DIGITS × 10^point
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    digits = stripped.rstrip("0")
    sign = "-" if value < 0 else ""
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{point - 1:+d}"
