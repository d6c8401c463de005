"""Health of this server: `/healthz`, `/readyz` and `/metrics`.

These URLs are answered before the middleware that needs a known host name or TLS, so that probes
need neither.
"""

import hmac
import time
from collections.abc import Callable
from http import HTTPStatus
from ipaddress import ip_address
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.utils import timezone

from audit.index import partitions
from audit.intake import metrics
from audit.intake.door import INTAKE
from config.postgresql.schema import SCHEMA
from config.readiness import why_not_ready

if TYPE_CHECKING:
    from audit.ledger.status import AllLedgersStatus

_SAFE = {"GET", "HEAD", "OPTIONS"}
INBOX_KNOWN_S = 15.0
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_JOBS_DUE = """
    SELECT count(*), coalesce(extract(epoch FROM now() - min(coalesce(j.scheduled_at, e.at))), 0)
    FROM procrastinate_jobs j
    LEFT JOIN procrastinate_events e ON e.job_id = j.id AND e.type = 'deferred'
    WHERE j.status = 'todo' AND coalesce(j.scheduled_at, now()) <= now()
"""


class HealthMiddleware:
    """Answers `/healthz`, `/readyz` and `/metrics`.

    `/healthz`: this process runs. `/readyz`: 200, or 503 with what is missing. `/metrics` needs the
    token; if none is set, only requests from this machine get it.
    """

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
        if request.path == "/metrics":
            if not may_read_metrics(request):
                return HttpResponse("Not authorized.\n", "text/plain", HTTPStatus.FORBIDDEN)
            return HttpResponse(metrics.exposition(_gauges()), content_type=METRICS_TYPE)
        return self.get_response(request)


class OlderCodeMiddleware:
    """Rejects forms and writes of the API while the database is newer than this code.

    It runs one query. The intake has its own check inside its transactions (`Schema.fence`). Pages
    are still shown: either they read what this code understands, or they fail.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.method not in _SAFE and request.path not in INTAKE:
            SCHEMA.check()  # its error becomes a 503 (`config.http.errors`)
        return self.get_response(request)


def may_read_metrics(request: HttpRequest) -> bool:
    """Whether a request has the token or, if none is set, comes from this machine.

    A request through a proxy counts as coming from elsewhere, even if the proxy runs here.
    """
    if settings.METRICS_TOKEN:
        given = request.headers.get("Authorization", "").encode()
        return hmac.compare_digest(given, f"Bearer {settings.METRICS_TOKEN}".encode())
    if any(name in request.headers for name in ("Forwarded", "X-Forwarded-For", "Via")):
        return False
    try:
        return ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


def _gauges() -> dict[str, tuple[str, float]]:
    try:
        ahead = partitions.days_ahead(timezone.now().date(), using="default")
        with connection.cursor() as cursor:
            cursor.execute(_JOBS_DUE)
            jobs, lag = cursor.fetchone()
        waiting = _INBOX.count()
        ledgers = _LEDGERS.now()
    except DatabaseError:
        return {"tooltrail_database_up": ("1 if the database is reachable, else 0.", 0)}
    return {
        "tooltrail_database_up": ("1 if the database is reachable, else 0.", 1),
        "tooltrail_partition_days_ahead": (
            "Days after today that have partitions.",
            ahead,
        ),
        "tooltrail_inbox_open": (
            "Rejected events not handled yet, counted up to 1,000 per tenant.",
            waiting,
        ),
        "tooltrail_ledger_refused": (
            "Tenants for which signing is refused: the log differs from what was signed.",
            ledgers.refused,
        ),
        "tooltrail_ledger_unsigned_seconds": (
            "Age of the oldest ledger entry of any tenant that is not signed yet.",
            ledgers.unsigned_s,
        ),
        "tooltrail_jobs_due": ("Jobs that are due and not started.", jobs),
        "tooltrail_job_lag_seconds": ("How long the oldest due job has waited.", lag),
    }


class _Inbox:
    """Number of open lines in all inboxes. Cached, because it is read tenant by tenant."""

    def __init__(self) -> None:
        self._until = 0.0
        self._count = 0

    def count(self) -> int:
        if time.monotonic() >= self._until:
            # Imported late: it needs models, and this module is loaded before django.setup().
            from audit.queries.inbox import inbox_open_everywhere

            self._count = inbox_open_everywhere()
            self._until = time.monotonic() + INBOX_KNOWN_S
        return self._count


_INBOX = _Inbox()


class _Ledgers:
    """State of all ledgers. Cached, because it is read tenant by tenant."""

    def __init__(self) -> None:
        self._until = 0.0
        self._known: AllLedgersStatus | None = None

    def now(self) -> "AllLedgersStatus":
        if self._known is None or time.monotonic() >= self._until:
            # Imported late: it needs models, and this module is loaded before django.setup().
            from audit.ledger.status import all_ledgers_status

            self._known = all_ledgers_status(timezone.now())
            self._until = time.monotonic() + INBOX_KNOWN_S
        return self._known


_LEDGERS = _Ledgers()
