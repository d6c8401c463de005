"""The registry's pages: the list of tools, a tool with one of its versions."""

from uuid import UUID

from django.http import Http404, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_safe

from tenants.access import TenantRequest, has_role, tenant_page
from tenants.models import Role
from tools_registry.models import Tool, ToolVersion
from tools_registry.versions import current_versions

PAGE_SIZE = 100


@require_safe
@tenant_page()
def tool_list(request: TenantRequest) -> HttpResponseBase:
    """All registered tools by name, each with its current version; `?after=<name>` continues."""
    after = request.GET.get("after", "").replace("\0", "")
    page = current_versions(request.tenant.id, after=after, size=PAGE_SIZE + 1)
    context = {
        "versions": page[:PAGE_SIZE],
        "next_after": page[PAGE_SIZE - 1].tool.name if len(page) > PAGE_SIZE else None,
        "after": after,
    }
    return render(request, "tools_registry/tool_list.html", context)


@require_safe
@tenant_page()
def tool_detail(request: TenantRequest, pk: UUID, number: int | None = None) -> HttpResponseBase:
    """One version of a tool, the current one unless `number` says which, and all others."""
    tool = get_object_or_404(Tool, tenant=request.tenant, pk=pk)
    versions = list(
        ToolVersion.objects.filter(tenant=request.tenant, tool=tool)
        .defer("input_schema", "output_schema", "meta")
        .order_by("-number")
    )
    shown = get_object_or_404(
        ToolVersion,
        tenant=request.tenant,
        tool=tool,
        number=tool.current_number if number is None else number,
    )
    context = {
        "tool": tool,
        "version": shown,
        "versions": versions,
        "may_edit": request.user.is_staff and has_role(request.membership, Role.EDITOR),
    }
    return render(request, "tools_registry/tool_detail.html", context)


@require_safe
@tenant_page()
def tool_find(request: TenantRequest) -> HttpResponseBase:
    """Lead from a call to its tool: `?name=…&version=…`, the version a number or a digest.

    A version the registry does not know leads to the tool; an unknown tool is a 404.
    """
    name = request.GET.get("name", "").replace("\0", "")
    tool = get_object_or_404(Tool, tenant=request.tenant, name=name)
    wanted = request.GET.get("version", "").replace("\0", "")
    versions = ToolVersion.objects.filter(tenant=request.tenant, tool=tool)
    if wanted.isascii() and wanted.isdigit() and len(wanted) < 10:
        version = versions.filter(number=int(wanted)).first()
    else:
        version = versions.filter(digest=wanted).first()
    if tool.current_number == 0:
        raise Http404("no version yet")
    return redirect(version or tool)
