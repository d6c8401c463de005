"""The API's list of violations: the same question as the page's."""

from typing import cast

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from ninja import Router

from audit.queries.violations import ViolationFilter, violations
from audit.time_range import read
from audit.violation_export import document
from tenants.api_auth import ApiKeyAuth, ApiRequest
from tenants.models import Scope
from tenants.scope import tenant_scope

router = Router()


@router.get("/violations", auth=ApiKeyAuth(Scope.READ), tags=["figures"])
def list_violations(request: HttpRequest, range: str = "") -> HttpResponse:
    """List what broke its schema in a range, by tool, version, path pattern and code.

    `range` is 15m, 1h, 6h, 24h, 7d, 30d or 90d; or `from` and `to` are RFC 3339 instants (UTC
    without an offset) or days. `tool`, `version`, `code`, `path` and `outcome` narrow it down.
    `calls` counts calls with such a violation, of `of_calls` that started; `new_since` is the
    version a violation came with, null if the first that is known had it.
    """
    asked = read(request.GET.dict(), now=timezone.now(), zone=timezone.get_default_timezone())
    if asked.problem:
        return JsonResponse({"code": "range", "message": asked.problem}, status=422)
    with tenant_scope(cast(ApiRequest, request).auth.tenant_id):
        found = violations(asked.range, ViolationFilter.read(request.GET))
    return JsonResponse(
        {
            "from": asked.range.start.isoformat(),
            "to": asked.range.end.isoformat(),
            "violations": [document(kind) for kind in found.kinds],
        }
    )
