"""How this server is: `/healthz`, `/readyz`, `/metrics`, and the check at start.

Fit means: the database answers, the role is bound by row-level security, and calls of the
next days find a partition. The addresses answer before any other middleware, so that probes
need neither a known host name nor TLS.
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
from audit.intake.door import EVENTS, TRACES
from config.instance import DRAINING
from config.postgresql.database import ROLE_QUERY, unfit_role
from config.postgresql.schema import SCHEMA, SchemaError

if TYPE_CHECKING:
    from audit.ledger.standing import Everywhere

_SAFE = {"GET", "HEAD", "OPTIONS"}
PARTITIONS_AHEAD_MIN = 3
"""Days. The worker keeps 14; under three somebody must look at why it does not."""
INBOX_KNOWN_S = 15.0
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_JOBS_DUE = """
    SELECT count(*), coalesce(extract(epoch FROM now() - min(coalesce(j.scheduled_at, e.at))), 0)
    FROM procrastinate_jobs j
    LEFT JOIN procrastinate_events e ON e.job_id = j.id AND e.type = 'deferred'
    WHERE j.status = 'todo' AND coalesce(j.scheduled_at, now()) <= now()
"""


class HealthMiddleware:
    """Answers `/healthz` (this process runs), `/readyz` (200, or 503 and what is missing) and
    `/metrics`, that one to who knows the token, or without one to this machine.
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
                return HttpResponse("not for you\n", "text/plain", HTTPStatus.FORBIDDEN)
            return HttpResponse(metrics.exposition(_gauges()), content_type=METRICS_TYPE)
        return self.get_response(request)


class OlderCodeMiddleware:
    """Lets no form and no write of the API through while the database is newer than this code.

    One query. The intake has a fence of its own inside its transactions (`Schema.fence`). Pages are
    still shown: what they read was true for this code, or is an error.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.method not in _SAFE and request.path not in (EVENTS, TRACES):
            SCHEMA.check()  # what it raises becomes a 503 (`config.http.errors`)
        return self.get_response(request)


def may_read_metrics(request: HttpRequest) -> bool:
    """Whether a request has the token, or where none is set comes from this machine itself.

    What a proxy passes on comes from elsewhere, wherever the proxy runs.
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
        return {"tooltrail_database_up": ("Whether the database answers.", 0)}
    return {
        "tooltrail_database_up": ("Whether the database answers.", 1),
        "tooltrail_partition_days_ahead": ("Days after today that have partitions.", ahead),
        "tooltrail_inbox_open": (
            "Refused lines nobody has dealt with yet, a thousand a tenant at most.",
            waiting,
        ),
        "tooltrail_ledger_refused": (
            "Tenants of whose log nothing is signed: it is not the one that was.",
            ledgers.refused,
        ),
        "tooltrail_ledger_unsigned_seconds": (
            "How long an entry of a log has waited to be signed, of all tenants' the longest.",
            ledgers.unsigned_s,
        ),
        "tooltrail_jobs_due": ("Jobs the worker should have begun.", jobs),
        "tooltrail_job_lag_seconds": ("How long the first of them has waited.", lag),
    }


class _Inbox:
    """How many lines wait in all inboxes; asked again after a while only, tenant by tenant."""

    def __init__(self) -> None:
        self._until = 0.0
        self._count = 0

    def count(self) -> int:
        if time.monotonic() >= self._until:
            # Models: this module is imported before Django is set up.
            from audit.queries.inbox import inbox_open_everywhere

            self._count = inbox_open_everywhere()
            self._until = time.monotonic() + INBOX_KNOWN_S
        return self._count


_INBOX = _Inbox()


class _Ledgers:
    """How all ledgers stand; asked again after a while only, tenant by tenant."""

    def __init__(self) -> None:
        self._until = 0.0
        self._known: Everywhere | None = None

    def now(self) -> "Everywhere":
        if self._known is None or time.monotonic() >= self._until:
            # Models: this module is imported before Django is set up.
            from audit.ledger.standing import everywhere

            self._known = everywhere(timezone.now())
            self._until = time.monotonic() + INBOX_KNOWN_S
        return self._known


_LEDGERS = _Ledgers()


def why_not_ready() -> list[str]:
    """What keeps this server from serving, one line each; empty when it is ready. Three queries.

    One that is about to stop still serves: whoever sends requests is to send them elsewhere.
    """
    if DRAINING.exists():
        return ["stopping"]
    try:
        reasons = [reason] if (reason := why_unfit()) else []
        ahead = partitions.days_ahead(timezone.now().date(), using="default")
    except DatabaseError:
        # The driver's text names hosts and users; whoever asks may be anybody.
        return ["the database cannot be reached"]
    if ahead < PARTITIONS_AHEAD_MIN:
        reasons.append(f"partitions exist {ahead} days ahead, not {PARTITIONS_AHEAD_MIN}")
    return reasons


def why_unfit() -> str | None:
    """Why this server must not serve: its database role, or a schema newer than its code; or None.

    Raises DatabaseError.
    """
    try:
        SCHEMA.check()
    except SchemaError as error:
        return str(error)
    with connection.cursor() as cursor:
        cursor.execute(ROLE_QUERY)
        return unfit_role(*cursor.fetchone())
