"""The effect of a version: its calls compared with those of the version before it."""

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from audit.effect.comparison import DEFAULT, LENGTHS, Which, effect_of, windows
from audit.effect.queries import count_calls, version_before
from audit.effect.shown import charts, effect_rows
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
    text = request.GET.get("version", "")
    wanted = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    context: dict[str, Any] = {"tool": tool, "numbers": numbers, "lengths": LENGTHS}
    if numbers:
        versions = ToolVersion.objects.filter(tenant=request.tenant, tool__tenant=request.tenant)
        version = get_object_or_404(
            versions.select_related("tool"), tool=tool, number=wanted or tool.current_number
        )
        context |= _compared(request, version)
    return render(request, "tools/effect.html", context)


def _compared(request: TenantRequest, version: ToolVersion) -> dict[str, Any]:
    before = version_before(version)
    length = request.GET.get("range", "")
    length = length if length in LENGTHS else DEFAULT
    usual: Which = "named" if before else "all"
    which = _SELECTIONS.get(request.GET.get("calls", ""), usual)
    context: dict[str, Any] = {
        "version": version,
        "before": before,
        "length": length,
        "length_name": LENGTHS[length].label,
        "which": which,
    }
    zone = timezone.get_current_timezone()
    of = windows(version.created_at, LENGTHS[length].duration, timezone.now(), zone)
    if of is None:
        return context
    counted = count_calls(of, version.tool.name, before, version)
    effect = effect_of(counted, which)
    names = (f"version {before.number}" if before else "before", f"version {version.number}")
    if which == "all":
        names = ("before", "after")
    return context | {
        "windows": of,
        "effect": effect,
        "rows": effect_rows(effect),
        "charts": charts(counted, which, names) if effect.before.calls + effect.after.calls else [],
        "others": sum(counted.total("other", is_after=after).calls for after in (False, True)),
        "unnamed": sum(counted.total("unnamed", is_after=after).calls for after in (False, True)),
    }
