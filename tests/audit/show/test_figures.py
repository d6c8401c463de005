"""How figures are written."""

import pytest

from audit.show import figures


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (None, "—"),
        (-5, "0 µs"),
        (0, "0 µs"),
        (999, "999 µs"),
        (1_000, "1.0 ms"),
        (9_949, "9.9 ms"),
        (9_950, "10 ms"),
        (412_300, "412 ms"),
        (999_500, "1.00 s"),
        (4_210_000, "4.21 s"),
        (9_995_000, "10.0 s"),
        (59_949_999, "59.9 s"),
        (59_950_000, "1 min"),
        (125_000_000, "2 min 5 s"),
        (3_599_600_000, "1 h"),
        (7_500_000_000, "2 h 5 min"),
        (86_399_000_000, "1 d"),
        (100_000_000_000, "1 d 4 h"),
        (10**16, "115,740 d 18 h"),
    ],
)
def test_durations_have_few_digits_or_two_units(microseconds: int | None, text: str) -> None:
    assert figures.duration(microseconds).replace(figures.NBSP, " ") == text


def test_counts_and_sizes_are_formatted() -> None:
    assert figures.count(1_204_331) == "1,204,331"
    assert figures.count(None) == figures.short_count(None) == "—"
    shorts = [figures.short_count(n).replace(figures.NBSP, " ") for n in (980, 1_204, 8_210_000)]
    assert shorts == ["980", "1.2 k", "8.21 M"]
    sizes = [figures.byte_size(n).replace(figures.NBSP, " ") for n in (812, 3_482, 1_258_291)]
    assert sizes == ["812 B", "3.4 KiB", "1.2 MiB"]
