"""The URL of another server, as somebody gave it. Pure.

Whether an address of that server may be connected to is decided when a connection is opened
(`config.http.addresses`).
"""

from urllib.parse import SplitResult, urlsplit

_CONTROLS = frozenset(map(chr, (*range(33), 127)))


def checked_url(url: str, *, may_have_query: bool = True) -> SplitResult:
    """The parts of a URL that requests can be sent to. Raises ValueError, a sentence for people."""
    if _CONTROLS.intersection(url) or "\\" in url:
        raise ValueError("The URL contains a character that must be encoded.")
    try:
        parts = urlsplit(url)
        port = parts.port
        (parts.hostname or "").encode("idna")
    except ValueError:
        raise ValueError("This is not a URL.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ValueError("The URL must begin with https:// and name a host.")
    if "@" in parts.netloc:
        raise ValueError("The URL must not contain a user or a password.")
    if parts.fragment:
        raise ValueError("The URL must not contain a fragment.")
    if parts.query and not may_have_query:
        raise ValueError("The URL must not contain a query.")
    return parts
