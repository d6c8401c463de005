"""The page of costs and the overview's tile: amounts, and calls without a price."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html import unescape

import pytest

from audit.prices.lists import save_list
from audit.queries.price_lists import ToolPrice
from audit.show.figures import money
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.pages import signed_in


def priced(cast: Cast, *prices: ToolPrice) -> None:
    day = (datetime.now(UTC) - timedelta(days=2)).date()
    with tenant_scope(cast.tenant.id):
        save_list(cast.tenant, cast.admin, day, "EUR", prices, datetime.now(UTC))


def text_of(page: str) -> str:
    """The words of a page."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def test_without_a_list_no_cost_is_shown(acme: Cast) -> None:
    send_events(acme.tenant, make_call())
    page = signed_in(acme.viewer).get("/costs/").content.decode()
    assert "No price list yet" in page
    assert "An admin can create one." in page
    assert "Cost</h2>" not in signed_in(acme.viewer).get("/").content.decode()


def test_calls_without_a_price_are_counted_and_not_free(acme: Cast) -> None:
    priced(acme, ToolPrice("search", Decimal("0.004")))
    start = datetime.now(UTC) - timedelta(minutes=5)
    events = [
        *make_call(tool_name="search", tool_version="1", started_at=start),
        *make_call(tool_name="search", tool_version="2", started_at=start, is_error=True),
        *make_call(tool_name="mystery", started_at=start, trace_id="t-2"),
    ]
    events[0]["context"] = {"agent": "planner", "agent_version": "7", "model": "m-1"}
    send_events(acme.tenant, events)
    client = signed_in(acme.viewer)
    page = client.get("/costs/", {"range": "1h"})
    words = text_of(page.content.decode())
    assert "EUR 0.00800" in words
    assert "1 call without a price" in words
    assert "2 of 3 completed" in words
    assert "mystery – 1 1 no price" in words
    assert "search 2 versions 2 0 EUR 0.00800" in words
    assert "planner 7 1 0 EUR 0.00400" in words
    overview = text_of(client.get("/", {"range": "1h"}).content.decode())
    assert "Cost EUR 0.00800 1 call without a price" in overview


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("0", "EUR 0.00"),
        ("0.000004", "EUR 0.00000400"),
        ("0.5", "EUR 0.500"),
        ("1", "EUR 1.00"),
        ("1234.5", "EUR 1,234.50"),
    ],
)
def test_no_cost_looks_like_none(amount: str, text: str) -> None:
    assert money(Decimal(amount), "EUR").replace("\N{NO-BREAK SPACE}", " ") == text
