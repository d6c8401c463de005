"""Count the spans and log records of a request that became no call, by name and reason.

A tenant has a limited number of rows, so that changing names do not fill the table: `KINDS_MAX` for
each reason, and one for all beyond. What names a tool is never displaced by the many spans that are
no calls.

Needs the tenant's open scope.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from audit.events.spans import Span
from audit.intake.otlp.conventions import looks_like_a_call
from audit.queries.skipped_spans import Reason, SkippedKind
from audit.sql import arrays
from audit.sql.run import Statements

KINDS_MAX: Final = 100
"""Rows of one reason. Requests at the same moment may add a few more."""
OTHERS: Final = "*"
"""The name of all beyond."""
_LONGEST = 120  # characters; four texts are a key of the table


def kind_of(span: Span) -> SkippedKind:
    """The kind of a span that is neither call nor decision."""
    reason = Reason.UNMARKED if looks_like_a_call(span) else Reason.NO_CALL
    service = span.resource.get("service.name")
    return SkippedKind(
        reason.value,
        _short(service) if isinstance(service, str) else "",
        _short(span.scope.name),
        _short(span.name),
    )


def rejected(reason: str) -> SkippedKind:
    """The kind of a span that was rejected for this reason. Its name may not have been read."""
    return SkippedKind(_short(reason), "", "", "")


def count_skipped(writer: Statements, skipped: Counter[SkippedKind]) -> None:
    """Add a request's skipped spans to the tenant's counts."""
    if not skipped:
        return
    known = (SkippedKind(*row) for row in writer.run("known_skipped_spans"))
    rows = sorted(fitted(skipped, known).items())
    writer.send(
        "count_skipped_spans",
        reasons=arrays.texts([kind.reason for kind, _ in rows]),
        services=arrays.texts([kind.service for kind, _ in rows]),
        scopes=arrays.texts([kind.scope for kind, _ in rows]),
        names=arrays.texts([kind.name for kind, _ in rows]),
        counts=arrays.bigints([count for _, count in rows]),
    )


def fitted(skipped: Counter[SkippedKind], known: Iterable[SkippedKind]) -> Counter[SkippedKind]:
    """The kinds with a place beside the known ones; all others as one of their reason."""
    stored = set(known)
    room = Counter(dict.fromkeys(Reason, KINDS_MAX))
    room.subtract(Reason.of(kind.reason) for kind in stored)
    counts: Counter[SkippedKind] = Counter()
    for kind, count in skipped.most_common():
        reason = Reason.of(kind.reason)
        if kind not in stored:
            room[reason] -= 1
            if room[reason] < 0:
                kind = SkippedKind(reason.value, "", "", OTHERS)
        counts[kind] += count
    return counts


def _short(text: str) -> str:
    return text[:_LONGEST].replace("\x00", "\ufffd")
