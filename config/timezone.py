"""The zone in which a viewer reads times: the browser's own, told in a cookie.

`static/js/timezone.js` sets the cookie on every page, the one to sign in first of all, so that
the server can write times where they belong. Without a script, without a cookie and for a name
nobody knows it is UTC. While a request is answered the zone is Django's current one: take it
from `django.utils.timezone`. How times are written is `config.instants`'.
"""

from collections.abc import Callable
from datetime import UTC, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

COOKIE = "timezone"


class TimeZoneMiddleware:
    """Activates the viewer's zone for the time of the request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with timezone.override(zone_named(request.COOKIES.get(COOKIE, ""))):
            return self._get_response(request)


def zone_named(name: str) -> tzinfo:
    """The zone of an IANA name; UTC for any other text, however hostile."""
    # Only names out of the list become a ZoneInfo, which looks for a file of that name.
    return ZoneInfo(name) if name in _names() else UTC


@cache
def _names() -> frozenset[str]:
    return frozenset(available_timezones())
