"""Health of this server: `/healthz`, `/readyz` and `/metrics`.

These URLs are answered before the middleware that needs a known host name or TLS, so that probes
need neither.
"""

import hmac
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from ipaddress import ip_address
from typing import TYPE_CHECKING

import psutil
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.utils import timezone

from audit.index import partitions
from audit.intake import metrics
from audit.intake.door import INTAKE
from config.postgresql import processes
from config.postgresql.schema import SCHEMA
from config.readiness import why_not_ready

if TYPE_CHECKING:
    from audit.queries.all_tenants import AllTenants

_SAFE = {"GET", "HEAD", "OPTIONS"}
_PROBES = {"/healthz", "/readyz", "/metrics"}
_KNOWN_S = 15.0
_KNOWN_TIMES = 20
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# Of this role on all hosts: a role sees only what its own connections do.
_CONNECTIONS = """
    SELECT count(*), count(*) FILTER (WHERE state <> 'idle')
    FROM pg_stat_activity WHERE usename = current_user AND datname = current_database()
"""
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


class ReadMetricsMiddleware:
    """Counts requests for pages and to the reading API, with their times, for `/metrics`.

    The intake counts its own requests; files and probes are not counted.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        path = request.path
        if path in INTAKE or path in _PROBES or path.startswith(settings.STATIC_URL):
            return self.get_response(request)
        began = time.perf_counter()
        response = self.get_response(request)
        kind = "api" if path.startswith("/api/") else "page"
        metrics.count_read(kind, response.status_code, time.perf_counter() - began)
        return response


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
            cursor.execute(_CONNECTIONS)
            connections, busy = cursor.fetchone()
        heard = processes.heard()
        of_all = _ALL_TENANTS.now()
    except DatabaseError:
        return _processes() | {
            "tooltrail_database_up": ("1 if the database is reachable, else 0.", 0)
        }
    return _processes() | {
        "tooltrail_database_up": ("1 if the database is reachable, else 0.", 1),
        "tooltrail_database_connections": (
            "Connections of web servers and workers of all hosts, as the database sees them.",
            connections,
        ),
        "tooltrail_database_connections_busy": ("Those that do not wait for a request.", busy),
        "tooltrail_workers_heard": (
            "Worker processes of all hosts that were heard within 30 seconds.",
            heard.get("worker", 0),
        ),
        "tooltrail_servers_heard": (
            "Serving processes of all hosts, web and gRPC, that were heard within 30 seconds.",
            heard.get("web", 0) + heard.get("gRPC", 0),
        ),
        "tooltrail_partition_days_ahead": (
            "Days after today that have partitions.",
            ahead,
        ),
        "tooltrail_inbox_open": (
            "Rejected events not handled yet, counted up to 1,000 per tenant.",
            of_all.inbox_open,
        ),
        "tooltrail_ledger_refused": (
            "Tenants for which signing is refused: the log differs from what was signed.",
            of_all.refused_ledgers,
        ),
        "tooltrail_ledger_unsigned_seconds": (
            "Age of the oldest ledger entry of any tenant that is not signed yet.",
            of_all.unsigned_s,
        ),
        "tooltrail_deliveries_waiting": (
            "Messages of alerts that are not delivered yet.",
            of_all.deliveries_waiting,
        ),
        "tooltrail_deliveries_waiting_seconds": (
            "Age of the oldest of them.",
            of_all.deliveries_oldest_s,
        ),
        "tooltrail_deliveries_dead": (
            "Messages of alerts that were given up within the last 24 hours.",
            of_all.deliveries_dead,
        ),
        "tooltrail_archives_failing": (
            "Tenants whose archive failed when it was tried last.",
            of_all.archives_failing,
        ),
        "tooltrail_archive_behind_seconds": (
            "For how long the oldest sealed day of any tenant waits to be archived.",
            of_all.archive_behind_s,
        ),
        "tooltrail_jobs_due": ("Jobs that are due and not started.", jobs),
        "tooltrail_job_lag_seconds": ("How long the oldest due job has waited.", lag),
    }


def _processes() -> dict[str, tuple[str, float]]:
    """Gauges of the web processes that run on this host: each has a file of counters."""
    alive = []
    for path in settings.METRICS_DIR.glob("[0-9]*"):
        with suppress(psutil.Error):
            alive.append(psutil.Process(int(path.name)).memory_info().rss)
    return {
        "tooltrail_processes": ("Serving processes of this host: web and gRPC.", len(alive)),
        "tooltrail_processes_memory_bytes": (
            "Their resident memory, shared parts counted each.",
            sum(alive),
        ),
    }


class _Known[T]:
    """Figures of all tenants, kept for some seconds, because they are read tenant by tenant.

    For 15 seconds, or for twenty times as long as they took to read: with ten thousand tenants,
    too, they take at most a twentieth of a processor.
    """

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read
        self._until = 0.0
        self._known: T | None = None

    def now(self) -> T:
        began = time.monotonic()
        if self._known is None or began >= self._until:
            self._known = self._read()
            ended = time.monotonic()
            self._until = ended + max(_KNOWN_S, _KNOWN_TIMES * (ended - began))
        return self._known


# This imports late: it needs models, and this module is loaded before django.setup().
def _all_tenants() -> "AllTenants":
    from audit.queries.all_tenants import read_all_tenants

    return read_all_tenants(timezone.now())


_ALL_TENANTS = _Known(_all_tenants)
