"""Spans and log records that arrived by OTLP and became no call: their names, and why."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from audit.sql.run import rows

KEPT_FOR: Final = timedelta(days=30)
"""How long a row stays after its spans last arrived."""


class Reason(StrEnum):
    """Why a span was skipped. Any other text is why it was rejected."""

    UNMARKED = "unmarked"
    """It names a tool, and no convention marks it as a call."""
    NO_CALL = "no_call"
    """Nothing in it says that it is a tool call."""
    REJECTED = "rejected"
    """Too many reasons of rejection: the others."""

    @classmethod
    def of(cls, text: str) -> "Reason":
        """The reason that a row's text stands for."""
        return cls(text) if text in cls else cls.REJECTED


class SkippedKind(NamedTuple):
    """What equal skipped spans have in common. `name` is '*' for all beyond those with a row."""

    reason: str
    service: str
    scope: str
    name: str


@dataclass(frozen=True, slots=True)
class SkippedSpans:
    """Skipped spans of one kind. A span that is sent twice counts twice."""

    kind: SkippedKind
    count: int
    first_at: datetime
    last_at: datetime

    @property
    def reason(self) -> Reason:
        """Why they were skipped."""
        return Reason.of(self.kind.reason)


@dataclass(frozen=True, slots=True)
class SkippedTotals:
    """How many spans were skipped."""

    spans: int
    unmarked: int
    """Those of them that name a tool."""


def skipped_spans() -> list[SkippedSpans]:
    """What was skipped: what names a tool first, then what was rejected, then all else."""
    kinds = [
        SkippedSpans(SkippedKind(*kind), count, first_at, last_at)
        for *kind, count, first_at, last_at in rows("skipped_spans", {})
    ]
    order = (Reason.UNMARKED, Reason.REJECTED, Reason.NO_CALL)
    return sorted(kinds, key=lambda one: order.index(one.reason))


def skipped_totals() -> SkippedTotals:
    """How many spans were skipped. One statement."""
    ((spans, unmarked),) = rows("skipped_span_totals", {"reason": Reason.UNMARKED.value})
    return SkippedTotals(spans, unmarked)


def forget_old(now: datetime) -> None:
    """Delete rows whose spans have not arrived for `KEPT_FOR`. Needs the scope."""
    rows("forget_skipped_spans", {"before": now - KEPT_FOR})
