"""The client's address, if trusted proxies are in front of the server."""

from django.conf import settings
from django.http import HttpRequest


def client_address(request: HttpRequest) -> str:
    """Return the client's address by `TOOLTRAIL_PROXIES`; without proxies, the connection's.

    Each proxy appends the address of its caller to X-Forwarded-For. With n proxies, the n-th entry
    from the end is the address that the outermost proxy saw. A client can forge the entries before
    it.
    """
    near: str = request.META.get("REMOTE_ADDR", "")
    hops = [one.strip() for one in request.headers.get("X-Forwarded-For", "").split(",")]
    if 0 < settings.PROXIES <= len(hops):
        return hops[-settings.PROXIES] or near
    return near
