"""The effect of a version, over the API."""

from datetime import UTC, datetime
from typing import Any, Literal, cast
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from ninja import Path, Query
from pydantic import Field

from audit.effect.comparison import LENGTHS, Calls, Compared, effect_of, windows
from audit.effect.queries import TOO_MANY, count_calls, version_before
from audit.pages.show.api_query import indexed_filter
from audit.pages.show.router import router
from audit.queries.among import ALL, Among
from config.http.problems import ProblemError
from tenants.api_auth import ApiRequest
from tenants.api_reads import Answer, Params, reads
from tools_registry.models import Tool
from tools_registry.versions import find_version


class EffectParams(Params):
    """Which version, and which calls."""

    version: int = Field(ge=1, le=2**31 - 1, examples=[2])
    """The number of the version."""
    range: Literal["6h", "24h", "7d", "30d"] = "7d"
    """Length of the window before and after publication."""
    calls: Literal["named", "all"] = "named"
    """`named`: calls that name this version or the previous one. `all`: all calls of the tool."""
    q: str = Field("", examples=["agent:planner environment:live"])
    """Only calls that match this query, as in the list of calls. Its times are not used."""


class SideOfEffect(Answer):
    """Completed calls before or after publication."""

    calls: int
    failed: int
    violating: int
    p95_ms: float | None


class EffectMeasure(Answer):
    """One measure before and after, and whether they differ (α = 0.01)."""

    measure: Literal["error_rate", "violation_rate", "p95_ms"]
    before: float | None
    after: float | None
    verdict: Literal["not_enough_data", "no_significant_difference", "lower", "higher"]
    """`lower` and `higher` are significant differences."""
    test: Literal["z", "fisher", "bootstrap"] | None
    """The test that was used; null without enough data."""
    p: float | None
    """For a rate: the two-sided p-value."""
    interval_ms: list[float] | None
    """For the p95: the 99 % confidence interval of the difference."""


class VersionEffect(Answer):
    """Calls before and after a version was published, in two windows of the same length."""

    version: int
    before_version: int | None
    """The version that was current before; null for the first version."""
    from_: datetime = Field(alias="from")
    published_at: datetime
    to: datetime
    before: SideOfEffect
    after: SideOfEffect
    measures: list[EffectMeasure]


@reads(
    router,
    "/tools/{uuid:tool_id}/effect",
    VersionEffect,
    tag="tools",
    problems=("not_found", "query"),
)
def read_effect(
    request: HttpRequest, tool_id: Path[UUID], params: Query[EffectParams]
) -> dict[str, Any]:
    """Compare failures, schema violations and durations before and after a version was published.

    Both windows have the requested length, or the age of the version if that is shorter. A verdict
    on rates needs 30 calls on each side, and one on the p95 needs 150.
    """
    tenant_id = cast(ApiRequest, request).auth.tenant_id
    tool = Tool.objects.filter(tenant_id=tenant_id, pk=tool_id).first()
    version = find_version(tool, params.version) if tool else None
    if version is None:
        raise ProblemError("not_found", "Tool or version not found.")
    wanted, now = indexed_filter(request, params.q), timezone.now()
    of = windows(version.created_at, LENGTHS[params.range].duration, now, UTC)
    if of is None:
        raise ProblemError("not_found", "The version was published less than a second ago.")
    before = version_before(version)
    among = Among.those_of(wanted, now) if params.q.strip() else ALL
    try:
        counted = count_calls(of, version.tool.name, before, version, among)
    except TimeoutError as error:
        raise ProblemError("query", TOO_MANY, position=0, length=len(params.q)) from error
    effect = effect_of(counted, params.calls)
    return {
        "version": version.number,
        "before_version": before.number if before else None,
        "from": of.before.start.astimezone(UTC),
        "published_at": version.created_at.astimezone(UTC),
        "to": of.after.end.astimezone(UTC),
        "before": _side(effect.before),
        "after": _side(effect.after),
        "measures": [_measure(one) for one in effect.measures],
    }


def _side(calls: Calls) -> dict[str, Any]:
    return {
        "calls": calls.calls,
        "failed": calls.failed,
        "violating": calls.violating,
        "p95_ms": calls.p95_ms,
    }


def _measure(one: Compared) -> dict[str, Any]:
    return {
        "measure": one.name,
        "before": one.before,
        "after": one.after,
        "verdict": one.verdict.value,
        "test": one.test.by if one.test else "bootstrap" if one.interval else None,
        "p": one.test.p if one.test else None,
        "interval_ms": [one.interval.low, one.interval.high] if one.interval else None,
    }
