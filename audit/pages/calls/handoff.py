"""Hands a failure to an agent: one text about a call, or about the newest call of a query."""

from datetime import date, datetime
from secrets import token_hex
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from audit.pages.calls import handoff_text
from audit.pages.calls.call_detail import panel_context
from audit.pages.calls.call_list import matching_page
from audit.pages.calls.panel import CallPanel
from audit.pages.show.requested_query import read_query, record_payload_query
from audit.queries.call_query import quoted
from audit.queries.calls import CallDetail
from audit.queries.calls import call_detail as find_call
from tenants.access import TenantRequest, tenant_page
from tools_registry.versions import find_version, versions_named


@require_safe
@tenant_page()
def call_handoff(request: TenantRequest, started_on: date, invocation_id: UUID) -> HttpResponse:
    """Return a call as text for an agent: finding, contract, and how to check a change."""
    call = find_call(started_on, invocation_id)
    if call is None:
        raise Http404("no such call")
    return _text(request, call, "", timezone.now())


@require_safe
@tenant_page()
def query_handoff(request: TenantRequest) -> HttpResponse:
    """Return the newest call that the query `q` finds as such a text."""
    query, now = read_query(request, request.GET.get("q", "")), timezone.now()
    if query.problems or not query.terms:
        raise Http404("no query of calls")
    record_payload_query(request, query, now)
    newest = next(iter(matching_page(query, now).calls), None)
    call = None if newest is None else find_call(newest.started_on, newest.invocation_id)
    if call is None:
        raise Http404("the query finds no call")
    return _text(request, call, str(query), now)


def _text(request: TenantRequest, call: CallDetail, query: str, now: datetime) -> HttpResponse:
    panel: CallPanel = panel_context(request, call, now)["panel"]
    text = text_about(request, request.tenant.id, panel, query or query_of(panel))
    return HttpResponse(text, content_type="text/plain; charset=utf-8")


def text_about(request: HttpRequest, tenant_id: UUID, panel: CallPanel, query: str) -> str:
    """Return the text about a call; `query` finds calls like it. The panel says who reads it."""
    call = panel.call
    named = call.tool_name, call.tool_version
    version = versions_named(tenant_id, [named]).get(named)
    if version is not None:
        version = find_version(version.tool, version.number)  # with its schemas
    addresses = {
        "call": reverse("call_detail", args=[call.started_on, call.invocation_id]),
        "calls": f"{reverse('call_list')}?{urlencode({'q': query})}",
        "mcp": "/mcp",
    }
    if version is not None:
        addresses["tool"] = reverse("tool_detail", args=[version.tool.pk])
    links = {name: request.build_absolute_uri(each) for name, each in addresses.items()}
    return handoff_text.write(panel, version, query, links, token_hex(4))


def query_of(panel: CallPanel) -> str:
    """Return a query for calls of the same tool that end like this one."""
    call, terms = panel.call, [f"tool:{quoted(panel.call.tool_name)}"]
    if panel.violations:
        first = panel.violations[0].violation
        terms += [f"violation:{quoted(first.code)}", f"path:{quoted(first.path)}"]
    else:
        terms.append(f"state:{call.state}")
        if call.error_code:
            terms.append(f"code:{quoted(call.error_code)}")
    return " ".join(terms)
