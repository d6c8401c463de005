"""Formats figures in the same way on every page: durations, counts, sizes.

Pure. Thousands are separated by commas, and a no-break space is before each unit.
"""

from decimal import Decimal

NBSP = "\N{NO-BREAK SPACE}"
_SECOND, _MINUTE, _HOUR, _DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000


def duration(microseconds: int | None) -> str:
    """A length of time in two or three digits, or two units: `1.2 ms`, `4.21 s`, `2 h 5 min`."""
    if microseconds is None:
        return "—"
    us = max(0, microseconds)
    if us < 1_000:
        return f"{us}{NBSP}µs"
    # From each limit on, the smaller form would round up to the larger one.
    if us < 9_950:
        return f"{us / 1_000:.1f}{NBSP}ms"
    if us < 999_500:
        return f"{us / 1_000:.0f}{NBSP}ms"
    if us < 9_995_000:
        return f"{us / _SECOND:.2f}{NBSP}s"
    if us < 59_950_000:
        return f"{us / _SECOND:.1f}{NBSP}s"
    for unit, name, below, below_name in (
        (_DAY, "d", _HOUR, "h"),
        (_HOUR, "h", _MINUTE, "min"),
        (_MINUTE, "min", _SECOND, "s"),
    ):
        rounded = (us + below // 2) // below * below
        if rounded >= unit:
            rest = rounded % unit // below
            head = f"{rounded // unit:,}{NBSP}{name}"
            return f"{head} {rest}{NBSP}{below_name}" if rest else head
    return f"{us / _SECOND:.1f}{NBSP}s"


def count(number: int | None) -> str:
    """A whole number with its thousands separated: `12,345`."""
    return "—" if number is None else f"{number:,}"


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 violation`, `2 violations`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def milliseconds(number: int) -> str:
    """A whole number of milliseconds as a duration: `900 ms`, `2.00 s`."""
    return duration(number * 1000)


def short_version(version: str) -> str:
    """A tool version for narrow places: `v4` for a number, the beginning of a digest."""
    if version.isascii() and version.isdigit():
        return f"v{version}"
    return version if len(version) <= 20 else f"{version[:16]}…"


def short_count(number: int | None) -> str:
    """A number in three digits, for narrow places: `980`, `1.20 k`, `12.3 k`, `8.21 M`."""
    if number is None:
        return "—"
    for unit, name in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= unit:
            return f"{number / unit:.3g}{NBSP}{name}"
    return str(number)


def money(amount: Decimal, currency: str) -> str:
    """An amount: `EUR 1,234.56`; below 1 in three digits, so that no cost looks like none."""
    if amount and amount < 1:
        digits = max(2, 2 - amount.adjusted())
        text = f"{amount:.{digits}f}"
        return f"{currency}{NBSP}{text}"
    return f"{currency}{NBSP}{amount:,.2f}"


def share(part: float | None) -> str:
    """A part of a whole as a percentage: `1.42 %`, `63.0 %`; `100 %` and `0 %` are exact."""
    if part is None:
        return "—"
    percent = part * 100
    if percent in {0, 100}:
        return f"{percent:.0f}{NBSP}%"
    if percent < 0.01:
        return f"<{NBSP}0.01{NBSP}%"
    return f"{percent:.2f}{NBSP}%" if percent < 9.995 else f"{min(percent, 99.9):.1f}{NBSP}%"


def byte_size(number: int) -> str:
    """A number of bytes: `812 B`, `3.4 KiB`, `1.2 MiB`."""
    if number < 1024:
        return f"{number}{NBSP}B"
    if number < 1024 * 1024:
        return f"{number / 1024:.1f}{NBSP}KiB"
    return f"{number / 1024 / 1024:.1f}{NBSP}MiB"
