"""Whose request it is, where trusted proxies stand in front of the server."""

from django.conf import settings
from django.http import HttpRequest


def client_address(request: HttpRequest) -> str:
    """The address of the client, by `TOOLTRAIL_PROXIES`; without proxies, the connection's.

    Each proxy appends the address it was called from to X-Forwarded-For. With n proxies the
    n-th entry from the end is what the outermost one saw; a client can forge those before it.
    """
    near: str = request.META.get("REMOTE_ADDR", "")
    hops = [one.strip() for one in request.headers.get("X-Forwarded-For", "").split(",")]
    if 0 < settings.PROXIES <= len(hops):
        return hops[-settings.PROXIES] or near
    return near
