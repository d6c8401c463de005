"""Maintenance windows as values: planned times in which nobody is notified. Pure.

They are also the JSON of the API.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, field_validator
from pydantic import model_validator as check_of_all

from audit.alerts.rules import NAME_MAX
from config.instants import local
from tenants.actions import storable_text
from tenants.zones import zone_named, zone_names

MINUTES_MIN, MINUTES_MAX = 5, 7 * 24 * 60
REASON_MAX = 1_000
RULES_NAMED_MAX = 100
_EARLIEST, _LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)


class Recurrence(StrEnum):
    """How often it is."""

    ONCE = "once"
    DAILY = "daily"
    WEEKLY = "weekly"

    @property
    def days(self) -> int:
        """Days from one time to the next; 0: there is no next one."""
        return {"once": 0, "daily": 1, "weekly": 7}[self.value]


def _text(text: object) -> object:
    return storable_text(text.strip()) if isinstance(text, str) else text


class Maintenance(BaseModel):
    """A planned time, or one that repeats, in which alerts are recorded and nobody is notified."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: Annotated[str, BeforeValidator(_text), Field(min_length=1, max_length=NAME_MAX)]
    """Names the window within its tenant."""
    reason: Annotated[str, BeforeValidator(_text), Field(min_length=1, max_length=REASON_MAX)]
    """It stays in the ledger."""
    starts_at: Annotated[AwareDatetime, Field(ge=_EARLIEST, le=_LATEST)]
    """When it begins, or begins for the first time."""
    minutes: int = Field(ge=MINUTES_MIN, le=MINUTES_MAX)
    """How long it takes."""
    repeats: Recurrence = Recurrence.ONCE
    time_zone: str = "UTC"
    """By whose clock it repeats: at the same time of the day, also when the clocks change."""
    rules: tuple[str, ...] = Field((), max_length=RULES_NAMED_MAX)
    """Names of the rules whose alerts nobody is notified of. None: all rules."""

    @field_validator("starts_at")
    @classmethod
    def _in_utc(cls, at: datetime) -> datetime:
        return at.astimezone(UTC)

    @field_validator("time_zone")
    @classmethod
    def _check_zone(cls, name: str) -> str:
        if name not in zone_names():
            raise ValueError("There is no such time zone.")
        return name

    @field_validator("rules")
    @classmethod
    def _in_order(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(sorted(set(names)))

    @check_of_all(mode="after")
    def _check(self) -> Self:
        if self.repeats.days and self.minutes > self.repeats.days * 24 * 60:
            raise ValueError("It must be over before it begins again.")
        return self

    @property
    def length(self) -> timedelta:
        """How long it takes."""
        return timedelta(minutes=self.minutes)

    def ends_at(self, at: datetime) -> datetime | None:
        """When the window ends that is on at this time; None: none is on."""
        for start in self._starts_near(at):
            if start <= at < start + self.length:
                return start + self.length
        return None

    def next_at(self, at: datetime) -> datetime | None:
        """When it begins next, after this time; None: never again."""
        return next((start for start in self._starts_near(at) if start > at), None)

    def _starts_near(self, at: datetime) -> Iterator[datetime]:
        """The starts before and after a time, in order."""
        days = self.repeats.days
        if not days:
            yield self.starts_at
            return
        zone = zone_named(self.time_zone)
        first = local(self.starts_at, zone)
        passed = (local(at, zone).date() - first.date()).days // days * days
        for number in (passed - days, passed, passed + days, passed + 2 * days):
            if number >= 0:
                day = first.date() + timedelta(days=number)
                yield datetime.combine(day, first.time(), zone).astimezone(UTC)
        if passed + 2 * days < 0:
            yield self.starts_at
