"""Pages of figures whose address has an invalid range."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.support.factories import Cast, make_call, send_events
from tests.support.pages import PARTIAL, signed_in, text

PAGES = [
    "/",
    "/latency/",
    "/latency/newest",
    "/violations/",
    "/approvals/",
    "/apart/",
    "/repeats/",
    "/repeats/results",
]
INVALID = [
    ("range=bogus", "Unknown range. Available ranges: 15m, 1h"),
    ("from=2026-11-20&to=2026-11-19", "The range must end after it starts."),
    ("from=<b>", "Enter a time as"),
]


@pytest.mark.parametrize("address", PAGES)
@pytest.mark.parametrize(("query", "reason"), INVALID)
def test_invalid_range_shows_the_reason_and_no_figures(
    acme: Cast, address: str, query: str, reason: str
) -> None:
    send_events(acme.tenant, make_call(tool_name="unmistakable"))
    client = signed_in(acme.viewer)
    with CaptureQueriesContext(connection) as statements:
        page = client.get(f"{address}?{query}")
    part = client.get(f"{address}?{query}", headers=PARTIAL)
    for answer in (page, part):
        shown = text(answer.content.decode())
        assert answer.status_code == 200
        assert "Invalid range" in shown
        assert reason in shown
        assert "Nothing was searched." in shown
        assert "unmistakable" not in shown
        assert "aria-current" not in answer.content.decode().partition('id="figures"')[2]
    assert not [each for each in statements.captured_queries if "invocation" in each["sql"]]
    assert part.content.strip().startswith(b"<div")


@pytest.mark.parametrize("address", PAGES)
def test_valid_range_shows_figures(acme: Cast, address: str) -> None:
    send_events(acme.tenant, make_call())
    shown = text(signed_in(acme.viewer).get(f"{address}?range=1h").content.decode())
    assert "Invalid range" not in shown
