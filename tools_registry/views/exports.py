"""Pages for exporting the registry as JSON and as tool definitions for providers."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from config.http.streams import stream
from tenants.access import TenantRequest, tenant_page
from tenants.actions import record_view
from tools_registry.exchange.export import current_contracts, export_registry
from tools_registry.exchange.providers import PROVIDERS, Definition, Provider, define
from tools_registry.models import Tool
from tools_registry.schemas import ToolContract
from tools_registry.versions import contract_of, find_version

REMARKS_MAX = 100


@require_safe
@tenant_page()
def registry_export(request: TenantRequest) -> HttpResponseBase:
    """Export all tools with all versions as JSON for an import; recorded once a minute."""
    if request.method != "HEAD":
        record_view(request.tenant.id, request.user, "registry.export", "registry")
    name = f"registry-{request.tenant.slug}-{timezone.now():%Y%m%dT%H%M%SZ}.json"
    chunks = export_registry(request.tenant.id)
    return stream(request.tenant.id, chunks, "application/json", file_name=name)


@require_safe
@tenant_page()
def tool_definitions(
    request: TenantRequest, pk: UUID | None = None, provider: str | None = None
) -> HttpResponseBase:
    """Definitions for providers, of one tool or of all current ones.

    With a provider it is the file; else the page that shows what each provider cannot express.
    """
    tool, contracts = _contracts(request, pk)
    if provider is None:
        offered = [_offered(name, one, contracts, tool) for name, one in PROVIDERS.items()]
        context = {"tool": tool, "count": len(contracts), "offered": offered}
        return render(request, "tools/definitions.html", context)
    if provider not in PROVIDERS:
        raise Http404("no such provider")
    chosen = PROVIDERS[provider]
    document = chosen.wrap([one.document for one in define(contracts, chosen)])
    return HttpResponse(
        json.dumps(document, indent=2),
        content_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="tools-{provider}.json"'},
    )


def _contracts(request: TenantRequest, pk: UUID | None) -> tuple[Tool | None, list[ToolContract]]:
    if pk is None:
        return None, current_contracts(request.tenant.id)
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    version = find_version(tool, tool.current_number) if tool.current_number else None
    return tool, [contract_of(version)] if version else []


def _offered(
    name: str, provider: Provider, contracts: list[ToolContract], tool: Tool | None
) -> dict[str, Any]:
    file_url = (
        reverse("tool_definitions_file", args=[tool.pk, name])
        if tool
        else reverse("tool_definitions_all_file", args=[name])
    )
    defined = define(contracts, provider)
    remarks = list(_remarks(defined))
    return {
        "name": name,
        "file_url": file_url,
        "provider": provider,
        "remarks": remarks[:REMARKS_MAX],
        "more": max(0, len(remarks) - REMARKS_MAX),
    }


def _remarks(defined: list[Definition]) -> Iterator[tuple[str, str]]:
    for one in defined:
        for remark in one.remarks:
            yield one.name, remark
