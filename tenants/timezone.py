"""The zone in which a viewer reads times: the browser's, from a cookie.

`static/js/timezone.js` sets the cookie on every page, starting with sign-in, so that the server
can render times. Without a script, without the cookie or with an unknown name, the zone is UTC.
On a tenant's page the user's own choice comes before the cookie, and the tenant's zone before UTC
(`tenants.access`). During a request it is Django's current zone: read it from
`django.utils.timezone`. `config.instants` formats times.
"""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from tenants.zones import COOKIE, zone_named


class TimeZoneMiddleware:
    """Activates the viewer's zone during a request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with timezone.override(zone_named(request.COOKIES.get(COOKIE, ""))):
            return self._get_response(request)
