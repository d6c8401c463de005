"""The range picker of pages with figures: the range from the URL, and the bar's context."""

from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from audit.queries.time_range import LENGTHS, RequestedRange, TimeRange, read
from config.http.htmx import render_page
from config.instants import iso_exact

OF_THE_RANGE = ("range", "from", "to")
"""The members of an address that name its range."""
_OF_THE_BAR = {*OF_THE_RANGE, "pause"}
_REFRESH_S = ((timedelta(hours=1), 10), (timedelta(days=1), 30), (timedelta(days=400), 60))
"""Refresh interval in seconds of a page whose range has up to this length."""


def requested_range(request: HttpRequest, now: datetime, usual: str = "") -> RequestedRange:
    """Return the URL's range, else the page's usual or the user's preferred one, in the user's
    time zone."""
    params = request.GET.dict()
    preferred = usual or getattr(request.user, "default_range", "")
    if preferred in LENGTHS and not params.keys() & OF_THE_RANGE:
        params["range"] = preferred
    return read(params, now=now, zone=timezone.get_current_timezone())


def range_bar(request: HttpRequest, requested: RequestedRange) -> dict[str, Any]:
    """Return the context of `components/_range.html` and of a page that refreshes itself."""
    of = requested.range
    is_live = bool(of.name) and not requested.problem and "pause" not in request.GET
    return {
        "requested": requested,
        "range": of,
        "ranges": LENGTHS,
        "range_from": _field(of, of.start),
        "range_to": _field(of, of.end),
        "kept": [(name, value) for name, value in request.GET.items() if name not in _OF_THE_BAR],
        "pinned": "" if requested.problem else _pinned(request, of),
        "refresh_s": next(s for length, s in _REFRESH_S if of.length <= length) if is_live else 0,
    }


def invalid_range(
    request: HttpRequest,
    requested: RequestedRange,
    page: str,
    heading: str,
    *,
    has_picker: bool = True,
) -> HttpResponse:
    """Answer an invalid range with the reason and without figures. Nothing is searched.

    `page` is the template of the page, whose stylesheets and scripts the picker's answer needs.
    """
    context = {
        **range_bar(request, requested),
        "page": page,
        "heading": heading,
        "has_picker": has_picker,
    }
    return render_page(request, "components/invalid_range.html", "figures", context)


def _pinned(request: HttpRequest, of: TimeRange) -> str:
    """Return the address of this page with its range as instants."""
    params = request.GET.copy()
    for name in _OF_THE_BAR:
        params.pop(name, None)
    params["from"], params["to"] = iso_exact(of.start), iso_exact(of.end)
    return f"{request.path}?{params.urlencode()}"


def _field(of: TimeRange, at: datetime) -> str:
    """Format an instant as the value of a datetime-local field."""
    return f"{at.astimezone(of.zone):%Y-%m-%dT%H:%M}"
