"""What a share link can lead to: a call, a trace, a report, or a page with figures of a range."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any
from urllib.parse import urlsplit

from django.http import QueryDict
from django.urls import Resolver404, ResolverMatch, resolve

from audit.pages.show.range_bar import OF_THE_RANGE
from audit.queries.call_query import Reader, parse
from audit.queries.calls import call_detail, trace_detail
from audit.queries.time_range import read
from audit.reports.queries import find_report
from config.instants import iso_exact

ADDRESS_MAX = 4_000
KINDS: Mapping[str, str] = {
    "call_detail": "call",
    "trace_detail": "trace",
    "trace_graph": "trace",
    "report_detail": "report",
    "agent_list": "chart",
    "apart_page": "chart",
    "cost_page": "chart",
    "latency_page": "chart",
    "repeat_page": "chart",
    "violation_list": "chart",
}
"""The pages that can be shared, by the name of their route: what they show."""
_OF_THE_READER = ("pause", "call", "row")
"""Parameters that say where on a page a reader is."""


class UnknownTargetError(Exception):
    """No page of this address can be shared, or it shows nothing that exists."""


class InvalidTargetError(ValueError):
    """The page's range or query is invalid; the message says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """A page that is shared."""

    kind: str
    address: str
    """Its path and parameters. A range has instants, so that it always means the same."""


def match_of(address: str) -> ResolverMatch | None:
    """The route of a path of this server; None if its page cannot be shared."""
    try:
        match = resolve(urlsplit(address).path)
    except (Resolver404, ValueError):
        return None
    return match if match.url_name in KINDS else None


def read_target(address: str, now: datetime, zone: tzinfo, default_range: str = "") -> Target:
    """The page of an address as a reader in `zone` sees it now. Needs the tenant's scope.

    Raises UnknownTargetError and InvalidTargetError.
    """
    if len(address) > ADDRESS_MAX or not address.startswith("/"):
        raise UnknownTargetError
    match = match_of(address)
    if match is None:
        raise UnknownTargetError
    kind = KINDS[str(match.url_name)]
    named: dict[str, Any] = match.kwargs
    is_there: dict[str, Callable[[], bool]] = {
        "call": lambda: call_detail(named["started_on"], named["invocation_id"]) is not None,
        "trace": lambda: trace_detail(named["trace_id"]) is not None,
        "report": lambda: find_report(named["pk"]) is not None,
        "chart": lambda: True,
    }
    if not is_there[kind]():
        raise UnknownTargetError
    parts = urlsplit(address)
    params = QueryDict(parts.query, mutable=True)
    for name in _OF_THE_READER:
        params.pop(name, None)
    if kind == "chart":
        _pin(params, now, zone, default_range)
    query = params.urlencode()
    return Target(kind, f"{parts.path}?{query}" if query else parts.path)


def _pin(params: QueryDict, now: datetime, zone: tzinfo, default_range: str) -> None:
    """Replace a range up to now by its instants, and times of a query, too."""
    named = {name: str(params[name]) for name in params}
    if default_range and not named.keys() & set(OF_THE_RANGE):
        named["range"] = default_range
    requested = read(named, now=now, zone=zone)
    if requested.problem:
        raise InvalidTargetError(requested.problem)
    for name in OF_THE_RANGE:
        params.pop(name, None)
    params["from"] = iso_exact(requested.range.start)
    params["to"] = iso_exact(requested.range.end)
    if text := named.get("q", ""):
        query = parse(text, Reader(zone))
        if query.problems:
            raise InvalidTargetError(query.problems[0].message)
        params["q"] = query.pinned(now)
