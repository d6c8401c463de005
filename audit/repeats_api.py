"""The API's loops and repeats: the same question as the page's."""

from typing import cast

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from ninja import Router

from audit.polling import polling_tools
from audit.queries.latency import ToolFilter
from audit.queries.repeats import find_repeats
from audit.repeats_export import documents
from audit.time_range import read
from tenants.api_auth import ApiKeyAuth, ApiRequest
from tenants.models import Scope
from tenants.scope import tenant_scope

router = Router()


@router.get("/repeats", auth=ApiKeyAuth(Scope.READ), tags=["figures"])
def list_repeats(request: HttpRequest, range: str = "") -> HttpResponse:
    """Identical calls (one tool, one call id): loops in one trace, and repeats in any traces.

    `range` is 15m, 1h, 6h, 24h, 7d, 30d or 90d; or `from` and `to` are RFC 3339 instants (UTC
    without an offset) or days; `tool` narrows it down. Calls from `from` on were looked at: that
    may be later than asked, where a range holds too many. Wasted are all calls but the first.
    Listed are the most frequent, without tools that are meant to poll; the totals are of all.
    """
    asked = read(request.GET.dict(), now=timezone.now(), zone=timezone.get_default_timezone())
    if asked.problem:
        return JsonResponse({"code": "range", "message": asked.problem}, status=422)
    with tenant_scope(cast(ApiRequest, request).auth.tenant_id):
        polling = polling_tools()
        found = find_repeats(asked.range, ToolFilter.read(request.GET).tool, polling)
    return JsonResponse(
        {
            "from": found.since.isoformat(),
            "to": asked.range.end.isoformat(),
            "loops": found.loop_count,
            "loop_calls": found.loop_calls,
            "repeated": found.repeated,
            "repeated_calls": found.repeated_calls,
            "polling_tools": polling,
            "listed": documents(found),
        }
    )
