"""The zone in which a viewer reads times: their own choice, the browser's, the tenant's, or UTC."""

from collections.abc import Mapping
from datetime import UTC, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from tenants.models import Tenant, User

COOKIE = "timezone"
"""The cookie in which `static/js/timezone.js` stores the browser's zone."""


def zone_of(user: User, cookies: Mapping[str, str], tenant: Tenant) -> tzinfo:
    """The first valid zone of user, cookie and tenant; UTC if none is valid."""
    names = (user.time_zone, cookies.get(COOKIE, ""), tenant.time_zone)
    return zone_named(next((name for name in names if name in zone_names()), ""))


def zone_named(name: str) -> tzinfo:
    """The zone of an IANA name; UTC for any other text, even a malicious one."""
    # Only listed names are passed to ZoneInfo, because it opens a file of that name.
    return ZoneInfo(name) if name in zone_names() else UTC


@cache
def zone_names() -> frozenset[str]:
    """All IANA names that this machine knows."""
    return frozenset(available_timezones())
