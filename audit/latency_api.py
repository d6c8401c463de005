"""The API's durations and tokens: the same question as the page's."""

from typing import cast

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from ninja import Router

from audit.latency_export import documents, figures_of
from audit.queries.latency import ToolFilter, latency
from audit.time_range import read
from tenants.api_auth import ApiKeyAuth, ApiRequest
from tenants.models import Scope
from tenants.scope import tenant_scope

router = Router()


@router.get("/latency", auth=ApiKeyAuth(Scope.READ), tags=["figures"])
def list_latency(request: HttpRequest, range: str = "") -> HttpResponse:
    """How long completed calls took and the tokens they used, by tool and version.

    `range` is 15m, 1h, 6h, 24h, 7d, 30d or 90d; or `from` and `to` are RFC 3339 instants (UTC
    without an offset) or days. `tool` and `version` narrow it down. Counts are exact, percentiles
    off by at most 5 % between 1 ms and 298 s.
    """
    asked = read(request.GET.dict(), now=timezone.now(), zone=timezone.get_default_timezone())
    if asked.problem:
        return JsonResponse({"code": "range", "message": asked.problem}, status=422)
    with tenant_scope(cast(ApiRequest, request).auth.tenant_id):
        found = latency(asked.range, ToolFilter.read(request.GET))
    return JsonResponse(
        {
            "from": asked.range.start.isoformat(),
            "to": asked.range.end.isoformat(),
            "total": figures_of(found.total),
            "versions": documents(found),
        }
    )
