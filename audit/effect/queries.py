"""Counts the calls before and after a version was published.

Failures, schema violations and latency, exactly, for any two ranges, as in
`audit.queries.over_time`.
"""

from typing import Final

from django.db.models import Q

from audit.effect.comparison import Calls, Counted, Windows
from audit.index import histogram
from audit.queries.among import ALL, Among
from audit.queries.over_time import FORMULA, slot_parameters
from audit.sql.run import rows
from tools_registry.models import ChangeKind, ToolChange, ToolVersion

QUERY_TIMEOUT_MS: Final = 2_000
TOO_MANY: Final = "These windows have too many calls to read one by one. Choose shorter ones."
"""Why the effect on the calls of a query is not known."""


def version_before(version: ToolVersion) -> ToolVersion | None:
    """The version that was current before this one was published, or None. Two queries."""
    changes = ToolChange.objects.filter(tenant=version.tenant_id, tool=version.tool_id)
    published = changes.filter(kind=ChangeKind.PUBLISHED, number=version.number).first()
    numbers = Q(number=version.number - 1)
    if published is not None:
        became = (ChangeKind.PUBLISHED, ChangeKind.MADE_CURRENT)
        last = changes.filter(kind__in=became, ordinal__lt=published.ordinal)
        numbers = Q(number=last.order_by("-ordinal").values("number")[:1])
    versions = ToolVersion.objects.filter(tenant=version.tenant_id, tool=version.tool_id)
    return versions.filter(numbers, tool__tenant=version.tenant_id).select_related("tool").first()


def names_of(version: ToolVersion | None) -> list[str]:
    """The names that executors may use for a version: its number and its digest."""
    return [] if version is None else [str(version.number), version.digest]


def count_calls(
    windows: Windows,
    tool_name: str,
    before: ToolVersion | None,
    after: ToolVersion,
    among: Among = ALL,
) -> Counted:
    """The calls of both windows, by part: all, or those of a query. One statement.

    Raises TimeoutError if a query has too many calls to read one by one.
    """
    counted = Counted(windows)
    named = {"tool": tool_name, "before": names_of(before), "after": names_of(after)}
    parameters = slot_parameters(windows.bounds) | FORMULA | named | among.parameters
    cells = (
        rows("effect_of_version", parameters)
        if among is ALL
        else rows(
            "effect_of_query",
            parameters,
            conditions=among.conditions,
            timeout_ms=QUERY_TIMEOUT_MS,
        )
    )
    for slot, taken_from, side, calls, failed, violating, number, buckets, in_buckets in cells:
        latency = (
            histogram.from_number(number)
            if number
            else _filled(dict(zip(buckets, in_buckets, strict=True)))
        )
        for place, sign in ((slot, 1), (taken_from, -1)):
            if place is not None:
                counted.add(place, side, Calls(calls, failed, violating, latency), sign)
    return counted


def _filled(counts: dict[int, int]) -> list[int]:
    return [counts.get(bucket, 0) for bucket in range(histogram.BUCKET_COUNT)]
