"""Where a record comes from: the tenant, its ledger, and the entry's place in it. Pure."""

from datetime import UTC, datetime

import msgspec

from audit.events.instants import EPOCH, instant_of


class Source(msgspec.Struct, frozen=True):
    """What all records of a stream have in common."""

    tenant_id: str
    tenant_slug: str
    origin: str
    """The ledger, as its checkpoints name it."""
    host: str
    version: str
    """Of the server."""
    of: str
    """`calls` or `actions`."""


class Place(msgspec.Struct, gc=False):
    """The place of one entry."""

    source: Source
    index: int
    received_us: int

    @property
    def uid(self) -> str:
        """The record's name: the same whenever it is sent again."""
        return f"{self.source.origin}#{self.index}"


def milliseconds(us: int) -> int:
    """Milliseconds since 1970, as OCSF has times."""
    return us // 1000


def rfc3339(us: int) -> str:
    """A time as RFC 3339 in UTC, to the microsecond."""
    try:
        instant = instant_of(us)
    except OverflowError:
        instant = EPOCH if us < 0 else datetime.max.replace(tzinfo=UTC)
    return f"{instant:%Y-%m-%dT%H:%M:%S}.{instant.microsecond:06d}Z"
