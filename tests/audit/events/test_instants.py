"""Times as whole numbers: the fast parser accepts and rejects what the contract does."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tooltrail.events import parse_instant

from audit.events.instants import Instants, days_since_epoch, microseconds

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENTS = st.timedeltas(timedelta(days=-90_000), timedelta(days=150_000)).map(
    lambda since: EPOCH + since
)


@given(MOMENTS, st.integers(-14 * 60, 14 * 60), st.sampled_from("Tt"), st.booleans())
def test_every_timestamp_format_is_parsed(
    moment: datetime, minutes: int, separator: str, is_short: bool
) -> None:
    there = moment.astimezone(timezone(timedelta(minutes=minutes)))
    text = there.isoformat().replace("T", separator)
    if is_short:
        text = text.replace("+00:00", "Z")
    assert Instants().read(text) == (moment - EPOCH) // timedelta(microseconds=1)


@pytest.mark.slow
@given(st.text("0123456789-+:.TZtz ٣", min_size=30, max_size=34) | st.text(max_size=40))
@example("2026-11-21T22:05:60.000000+00:00")
@example("2026-11-21T24:00:00.000000+00:00")
@example("2026-02-30T22:05:22.000000+00:00")
@example("2026-11-21T22:05:22.00000٣+00:00")
@example("2026-11-21T22:05:22,000000+00:00")
@example("2026-11-21 22:05:22.000000+00:00")
@example("0000-11-21T22:05:22.000000+00:00")
def test_timestamps_are_accepted_and_rejected_like_the_contract(text: str) -> None:
    try:
        expected = microseconds(parse_instant(text))
    except ValueError:
        with pytest.raises(ValueError):
            Instants().read(text)
    else:
        assert Instants().read(text) == expected


@given(MOMENTS)
def test_days_match_the_microseconds(moment: datetime) -> None:
    assert days_since_epoch(moment.date()) == microseconds(moment) // 86_400_000_000
