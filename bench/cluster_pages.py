"""Pages of two sides, compared without what each server makes itself."""

import difflib
import re
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from bench.compared_side import Side, fetch

_OWN = (
    *("/ledger", "/api/v1/ledger", "/actions", "/api/v1/actions", "/evidence"),
    *("/charts/calls", "/share/new", "/api/v1/stream"),
)
"""Pages about what the server itself did, and when, pages of the hours until now, and the stream,
whose order is that of each server's own log. Only their status is compared."""

_REFUSED = ("/settings/security/", "/api/v1/price-lists/")
"""Acts that need a fresh confirmation, and what no side has: both refuse them alike."""

_LIMITED = {"/calls/count"}
"""Pages that count for a limited time, and say so if they did not finish."""

_UNFINISHED = "At least this many"
_TRIES = 10
_ELEMENT = re.compile(r'<time datetime="([^"]+)"[^>]*>[^<]*</time>')
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)")
_ID = re.compile(r"01[0-9a-f]{6}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_RANDOM = [
    re.compile(r'nonce="[^"]+"'),
    re.compile(r'(?<=csrfmiddlewaretoken" value=")\w{64}'),
    re.compile(r"(?<=X-CSRFToken)\W+\w{64}"),
    re.compile(r"127\.0\.0\.1:\d+"),
    re.compile(r'(?<="key_id":")\w+'),
    re.compile(r"(?<=tt_…_)\w+"),
    re.compile(r"(?<=----- untrusted )[0-9a-f]{8}"),
]


def masked(document: str, since: datetime) -> str:
    """The document without tokens, and without times and ids since then: a server made them."""

    def instant(match: re.Match[str]) -> str:
        text = match[1] if match.re is _ELEMENT else match[0]
        return "TIME" if datetime.fromisoformat(text) >= since else match[0]

    def own_id(match: re.Match[str]) -> str:
        ms = uuid.UUID(match[0]).int >> 80
        return "ID" if ms >= since.timestamp() * 1000 else match[0]

    for pattern in _RANDOM:
        document = pattern.sub("RANDOM", document)
    for pattern in (_ELEMENT, _INSTANT):
        document = pattern.sub(instant, document)
    return _ID.sub(own_id, document)


def compare_pages(
    sides: Sequence[Side], since: datetime, silent_at: float
) -> tuple[Counter[str], list[str]]:
    """Fetch every address from both sides: how many comparisons of each kind, and what differs.

    From `silent_at` on (of the monotonic clock), no producer is heard on either side.
    """
    begin = since.replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    window = f"from={begin:%Y-%m-%dT%H:%MZ}&to={begin + timedelta(hours=3):%Y-%m-%dT%H:%MZ}"
    kinds, differing = Counter[str](), list[tuple[str, str]]()
    for slug, paths in sides[0].run("pages").items():
        for path in paths:
            kind, difference = _compare_page(sides, slug, path, window, since)
            kinds[kind] += 1
            if difference:
                differing.append((slug, path))
    if differing:
        time.sleep(max(0.0, silent_at - time.monotonic()))
    again = [_compare_page(sides, *each, window, since)[1] for each in differing]
    return kinds, [each for each in again if each]


def _compare_page(
    sides: Sequence[Side], slug: str, path: str, window: str, since: datetime
) -> tuple[str, str]:
    """The kind of the comparison, and how the page differs."""
    for _ in range(_TRIES):
        first, second = (page(side, slug, path, window) for side in sides)
        if path not in _LIMITED or first == second:
            break
    is_limited = path in _LIMITED and _UNFINISHED in first[1] + second[1]
    is_own = path.startswith(_OWN) or is_limited
    texts = [masked(text, since).splitlines() for _, text in (first, second)]
    difference = ""
    if first[0] != second[0] or (texts[0] != texts[1] and not is_own):
        lines = list(difflib.unified_diff(texts[0], texts[1], lineterm="", n=0))[2:8]
        shown = "\n    ".join(line[:200] for line in lines)
        difference = f"{slug}: {path}: {first[0]}, {second[0]}\n    {shown}"
    elif first[0] >= 500 or (first[0] >= 400 and not path.startswith(_REFUSED)):
        difference = f"{slug}: {path}: {first[0]} on both: {first[1][:200]}"
    return "statuses of pages" if is_own else "pages", difference


def page(side: Side, slug: str, path: str, window: str) -> tuple[int, str]:
    """Status and text of a page, or of the API; of a range if it takes one."""
    facts = side.tenants[slug]
    headers = {"Cookie": f"sessionid={facts['session']}"}
    if path.startswith("/api/"):
        headers = {"Authorization": f"Bearer {facts['api_key']}"}
    status, kind, body = fetch(
        side.urls[0], f"{path}{'&' if '?' in path else '?'}{window}", headers
    )
    if status == 422:  # it has no range
        status, kind, body = fetch(side.urls[0], path, headers)
    return status, kind if "zip" in kind else body.decode(errors="replace")
