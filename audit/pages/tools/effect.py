"""The effect of a version: its calls compared with those of the version before it."""

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from audit.effect.comparison import DEFAULT, LENGTHS, Which, Windows, effect_of, windows
from audit.effect.queries import TOO_MANY, count_calls, names_of, version_before
from audit.effect.shown import charts, measure_rows
from audit.pages.show.choice import choice
from audit.pages.show.requested_query import mistakes, read_query
from audit.queries.alerts import fired_in
from audit.queries.among import ALL, Among
from audit.queries.call_query import Query, quoted
from audit.show.charts import range_query
from tenants.access import TenantRequest, tenant_page
from tools_registry.models import Tool, ToolVersion

_SELECTIONS: dict[str, Which] = {"named": "named", "all": "all"}


@require_safe
@tenant_page()
def effect_page(request: TenantRequest, pk: UUID) -> HttpResponse:
    """Compare calls before and after a version (`?version=…`, default: current) was published."""
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    numbers = list(
        ToolVersion.objects.filter(tenant=request.tenant, tool=tool)
        .order_by("-number")
        .values_list("number", flat=True)
    )
    wanted = choice(request, "version", [str(number) for number in numbers])
    query = read_query(request).of_index()
    context: dict[str, Any] = {
        "tool": tool,
        "numbers": numbers,
        "lengths": LENGTHS,
        "query": query,
        "mistakes": mistakes(query),
    }
    if numbers:
        versions = ToolVersion.objects.filter(tenant=request.tenant, tool__tenant=request.tenant)
        version = get_object_or_404(
            versions.select_related("tool"), tool=tool, number=int(wanted or tool.current_number)
        )
        context |= _compared(request, version, query)
    return render(request, "tools/effect.html", context)


def _compared(request: TenantRequest, version: ToolVersion, query: Query) -> dict[str, Any]:
    before = version_before(version)
    length = choice(request, "range", LENGTHS) or DEFAULT
    usual: Which = "named" if before else "all"
    which = _SELECTIONS.get(choice(request, "calls", _SELECTIONS), usual)
    context: dict[str, Any] = {
        "version": version,
        "before": before,
        "length": length,
        "length_name": LENGTHS[length].label,
        "which": which,
    }
    zone, now = timezone.get_current_timezone(), timezone.now()
    of = windows(version.created_at, LENGTHS[length].duration, now, zone)
    if of is None or query.problems:
        return context
    among = Among.those_of(query.wanted, now) if query.terms else ALL
    try:
        counted = count_calls(of, version.tool.name, before, version, among)
    except TimeoutError:
        return context | {"why_not": TOO_MANY}
    effect = effect_of(counted, which)
    names = (f"version {before.number}" if before else "before", f"version {version.number}")
    if which == "all":
        names = ("before", "after")
    name = version.tool.name
    fired = [one for window in (of.before, of.after) for one in fired_in(window, name)]
    return context | {
        "windows": of,
        "compared": _queries(of, before, version, which, query),
        "effect": effect,
        "rows": measure_rows(effect.measures),
        "charts": charts(counted, which, names, fired, _drawn(before, version, which, query))
        if effect.before.calls + effect.after.calls
        else [],
        "others": sum(counted.total("other", is_after=after).calls for after in (False, True)),
        "unnamed": sum(counted.total("unnamed", is_after=after).calls for after in (False, True)),
    }


def _queries(
    of: Windows, before: ToolVersion | None, version: ToolVersion, which: Which, query: Query
) -> dict[str, str]:
    """The queries of the calls `before` and `after`; empty if there is no version before."""
    if which == "named" and before is None:
        return {}
    terms_before, terms_after = _drawn(before, version, which, query)
    return {
        "before": f"{range_query(of.before.start, of.before.end)} {terms_before}",
        "after": f"{range_query(of.after.start, of.after.end)} {terms_after}",
    }


def _drawn(
    before: ToolVersion | None, version: ToolVersion, which: Which, query: Query
) -> tuple[str, str]:
    """The queries of the calls of both versions, at any time; or of the tool, for both sides."""

    def terms(one: ToolVersion | None) -> str:
        names = (f"version:{quoted(name)}" for name in names_of(one))
        named = f"({' OR '.join(names)})" if which == "named" and one is not None else ""
        tool = f"tool:{quoted(version.tool.name)}"
        return " ".join(filter(None, [tool, named, query.without("since", "until", "tool")]))

    return terms(before), terms(version)
