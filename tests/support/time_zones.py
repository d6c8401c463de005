"""Time zones with every kind of offset, and one whose clocks were put back yesterday."""

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from django.utils import timezone

NOW = timezone.now()


class TurnedBack(tzinfo):
    """A zone whose clocks were put back from UTC+2 to UTC+1 yesterday: a day of 25 hours."""

    at = (NOW - timedelta(days=1)).replace(hour=1, minute=0, second=0, microsecond=0)

    def utcoffset(self, dt: datetime | None) -> timedelta:
        assert dt is not None
        wall, turned = dt.replace(tzinfo=None), self.at.replace(tzinfo=None)
        is_later = wall >= turned + timedelta(hours=2) or (
            wall >= turned + timedelta(hours=1) and dt.fold
        )
        return timedelta(hours=1 if is_later else 2)

    def fromutc(self, dt: datetime) -> datetime:
        is_later = dt.replace(tzinfo=UTC) >= self.at
        wall = dt + timedelta(hours=1 if is_later else 2)
        is_twice = is_later and dt.replace(tzinfo=UTC) < self.at + timedelta(hours=1)
        return wall.replace(fold=int(is_twice))

    def tzname(self, dt: datetime | None) -> str:
        return "turned back"

    def dst(self, dt: datetime | None) -> timedelta:
        return timedelta(0)


ZONES: list[tzinfo] = [
    *(ZoneInfo(name) for name in ("UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns")),
    ZoneInfo("Asia/Kolkata"),
    TurnedBack(),
]
