"""Whether this server is alive and fit to serve: `/healthz`, `/readyz`, and the check at start.

Fit means: the database answers, the role is bound by row-level security, and calls of the
next days find a partition. Both addresses answer before any other middleware, so that
probes need neither a known host name nor TLS.
"""

from collections.abc import Callable
from http import HTTPStatus

from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.utils import timezone

from audit import partitions
from config.database import ROLE_QUERY, unfit_role

PARTITIONS_AHEAD_MIN = 3
"""Days. The worker keeps 14; under three somebody must look at why it does not."""


class HealthMiddleware:
    """Answers `/healthz` (this process runs) and `/readyz` (200, or 503 and what is missing)."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path == "/healthz":
            return HttpResponse("ok\n", content_type="text/plain")
        if request.path == "/readyz":
            missing = why_not_ready()
            return JsonResponse(
                {"ready": not missing, "missing": missing},
                status=HTTPStatus.SERVICE_UNAVAILABLE if missing else HTTPStatus.OK,
            )
        return self.get_response(request)


def why_not_ready() -> list[str]:
    """What keeps this server from serving, one line each; empty when it is ready. Two queries."""
    try:
        reasons = [reason] if (reason := why_unfit_role()) else []
        ahead = partitions.days_ahead(timezone.now().date(), using="default")
    except DatabaseError:
        # The driver's text names hosts and users; whoever asks may be anybody.
        return ["the database cannot be reached"]
    if ahead < PARTITIONS_AHEAD_MIN:
        reasons.append(f"partitions exist {ahead} days ahead, not {PARTITIONS_AHEAD_MIN}")
    return reasons


def why_unfit_role() -> str | None:
    """Why the database role of this server must not serve, or None. Raises DatabaseError."""
    with connection.cursor() as cursor:
        cursor.execute(ROLE_QUERY)
        return unfit_role(*cursor.fetchone())
