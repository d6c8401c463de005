"""The draw: repeatable, without replacement, and fair."""

import hashlib
from collections import Counter

from tooltrail.evidence.sample.selection import commitment_of, draw, seed_of


def test_draw_is_fixed_for_ever() -> None:
    """Whoever changes the rule makes samples of before unrepeatable."""
    seed = seed_of(bytes(32), "ab" * 32, b"\x01" * 32)
    expected = hashlib.sha256(bytes(32) + b"ab" * 32 + b"\x01" * 32).digest()
    assert seed == expected
    assert seed.hex() == "5bb7d3326c6830c9637bf8251971d6b08ab21d7c60ae04a2457cef5749611096"
    assert draw(seed, range(100), 5) == [13, 67, 54, 34, 39]
    assert commitment_of("ab" * 32) == hashlib.sha256(b"ab" * 32).hexdigest()


def test_larger_sample_begins_with_the_smaller_one() -> None:
    for number in range(20):
        seed = bytes([number]) * 32
        drawn = draw(seed, range(1_000), 100)
        assert draw(seed, range(1_000), 10) == drawn[:10]
        assert len(set(drawn)) == 100


def test_each_call_is_drawn_as_often_as_any_other() -> None:
    counts = Counter(
        index for number in range(5_000) for index in draw(number.to_bytes(32), range(20), 5)
    )
    expected = 5_000 * 5 / 20
    chi_squared = sum((counts[each] - expected) ** 2 / expected for each in range(20))
    assert chi_squared < 43.8  # the 99.9th percentile with 19 degrees of freedom
