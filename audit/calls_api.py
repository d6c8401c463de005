"""The API's list of calls: the same query as the page's, paged by key."""

from typing import cast

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from ninja import Router

from audit.call_document import document
from audit.call_query import parse
from audit.queries.call_list import Cursor, call_page, violations_of
from tenants.api_auth import ApiKeyAuth, ApiRequest
from tenants.models import Scope
from tenants.scope import tenant_scope

MAX_LIMIT = 1000

router = Router()


@router.get("/calls", auth=ApiKeyAuth(Scope.READ), tags=["calls"])
def list_calls(
    request: HttpRequest, q: str = "", cursor: str = "", limit: str = "100"
) -> HttpResponse:
    """List calls, newest first: `q` is a query such as `tool:search state:error duration:>2s`.

    `next` is the `cursor` of the page behind this one, null at the end. A filter that no index
    serves searches a bounded stretch at a time: then `searched_until` says how far, and the
    page may hold fewer than `limit` (1 to 1,000) calls, or none, and not be the last.
    """
    query = parse(q)
    if query.problems:
        first = query.problems[0]
        return _problem(
            "query", first.message, position=first.start, length=first.end - first.start
        )
    before = Cursor.read(cursor) if cursor else None
    if cursor and before is None:
        return _problem("cursor", "cursor is the next of an earlier answer, or left out.")
    if not (limit.isascii() and limit.isdigit() and 1 <= int(limit[:9]) <= MAX_LIMIT):
        return _problem("limit", f"limit is a whole number from 1 to {MAX_LIMIT}.")
    with tenant_scope(cast(ApiRequest, request).auth.tenant_id):
        page = call_page(query.wanted, now=timezone.now(), before=before, size=int(limit))
        violations = violations_of(page.calls)
    return JsonResponse(
        {
            "calls": [document(call, violations.get(call.invocation_id)) for call in page.calls],
            "next": str(page.older) if page.older else None,
            "searched_until": page.searched_until and page.searched_until.isoformat(),
        }
    )


def _problem(code: str, message: str, **more: int) -> JsonResponse:
    return JsonResponse({"code": code, "message": message, **more}, status=422)
