"""In which zone a viewer reads times: their own choice, the browser's, the tenant's, or UTC."""

from collections.abc import Mapping
from datetime import UTC, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from tenants.models import Tenant, User

COOKIE = "timezone"
"""In which `static/js/timezone.js` tells the browser's."""


def zone_of(user: User, cookies: Mapping[str, str], tenant: Tenant) -> tzinfo:
    """The zone of the first of the three names that is one."""
    names = (user.time_zone, cookies.get(COOKIE, ""), tenant.time_zone)
    return zone_named(next((name for name in names if name in zone_names()), ""))


def zone_named(name: str) -> tzinfo:
    """The zone of an IANA name; UTC for any other text, however hostile."""
    # Only names out of the list become a ZoneInfo, which looks for a file of that name.
    return ZoneInfo(name) if name in zone_names() else UTC


@cache
def zone_names() -> frozenset[str]:
    """All IANA names this machine knows."""
    return frozenset(available_timezones())
