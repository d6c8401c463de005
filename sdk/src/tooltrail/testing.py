"""Trails for tests: events stay in memory, ids and times repeat on every run, no server.

    def test_weather(tooltrail_trail):
        tool = tooltrail_trail.tool(get_weather)
        tool("London")
        [start, end] = tooltrail_trail.events
        assert not end["is_error"]

Put `pytest_plugins = ["tooltrail.testing"]` in a conftest.py to get the fixture.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from tooltrail.events import EVENT, Event
from tooltrail.producer import Producer
from tooltrail.spool.memory import MemorySpool
from tooltrail.trail import Trail

START = datetime(2026, 1, 1, tzinfo=UTC)
MEMORY_BYTES = 64 * 1024 * 1024


class FixedClock:
    """A clock that returns `start` first, then one `step` later on each call."""

    def __init__(
        self, start: datetime = START, step: timedelta = timedelta(milliseconds=1)
    ) -> None:
        self.now = start
        self.step = step

    def __call__(self) -> datetime:
        now = self.now
        self.now += self.step
        return now


class CountedIds:
    """Generates ids that count up, from `00000000-0000-7000-8000-000000000001`."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self) -> str:
        self._count += 1
        return str(UUID(int=(7 << 76) | (8 << 60) | self._count))


class MemoryTrail(Trail):
    """A trail whose events stay in this process: `events` as written, `models` validated.

    Takes the options of `Trail`; times and ids are fixed unless given. Unlike a real trail it
    raises internal errors, so that a test fails instead of an event going missing.
    """

    def __init__(self, **options: Any) -> None:
        options.setdefault("clock", FixedClock())
        options.setdefault("ids", CountedIds())
        super().__init__("memory:", "memory", **options)
        self._lines: list[bytes] = []

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events recorded so far, oldest first, without producer id and sequence number."""
        events = [json.loads(line) for line in self._all_lines()]
        for event in events:
            event.pop("producer_id", None)
            event.pop("producer_seq", None)
        return events

    @property
    def models(self) -> list[Event]:
        """The same events as validated models. Raises pydantic.ValidationError."""
        return [EVENT.validate_json(line) for line in self._all_lines()]

    def clear(self) -> None:
        """Forget the events recorded so far."""
        self._all_lines()
        self._lines.clear()

    def _all_lines(self) -> list[bytes]:
        spool = self._make_producer().spool
        spool.seal()
        for batch in spool.batches():
            self._lines += spool.read(batch)
            spool.discard(batch)
        return self._lines

    def _open_producer(self) -> Producer:
        return Producer(MemorySpool(MEMORY_BYTES, lambda: None))

    def _complain(self, error: Exception) -> None:
        raise error


try:
    import pytest
except ImportError:  # only the fixture needs pytest
    pass
else:

    @pytest.fixture
    def tooltrail_trail() -> Iterator[MemoryTrail]:
        """A new `MemoryTrail` for each test."""
        trail = MemoryTrail()
        yield trail
        trail.close()
