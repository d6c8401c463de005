"""The zone in which a viewer reads times: the browser's own, told in a cookie.

`static/js/timezone.js` sets the cookie on every page, the one to sign in first of all, so that
the server can write times where they belong. Without a script, without a cookie and for a name
nobody knows it is UTC. On a tenant's page a choice of the viewer's own goes before it, and the
tenant's zone before UTC (`tenants.access`). While a request is answered the zone is Django's
current one: take it from `django.utils.timezone`. How times are written is `config.instants`'.
"""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from tenants.zones import COOKIE, zone_named


class TimeZoneMiddleware:
    """Activates the viewer's zone for the time of the request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with timezone.override(zone_named(request.COOKIES.get(COOKIE, ""))):
            return self._get_response(request)
