"""Rules that watch what calls cost: in short and long windows, alone and with others."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from audit.alerts.evaluation import SETTLING, evaluate
from audit.alerts.rules import Rule, WindowCondition
from audit.alerts.stored import save_rule
from audit.alerts.trial import try_rule
from audit.models import Alert
from audit.prices import units
from audit.prices.lists import save_list
from audit.queries.price_lists import ToolPrice
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events

MINUTE = timedelta(minutes=1)
PRICES = (
    ToolPrice("search", Decimal("0.1")),
    ToolPrice("ocr", Decimal("0.01"), "output.meta.pages"),
)


@pytest.fixture
def start() -> datetime:
    """A full hour, some hours ago."""
    return datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=5)


def rule(query: str = "", **members: Any) -> Rule:
    condition = {"measure": "cost", "window_minutes": 60, "alert": 0.3, "query": query} | members
    return Rule.model_validate({"name": f"dear {query}", "condition": condition})


def save(cast: Cast, start: datetime, *rules: Rule) -> None:
    with tenant_scope(cast.tenant.id):
        for each in rules:
            save_rule(cast.tenant, cast.editor, each, start)


def price(cast: Cast, start: datetime, currency: str = "EUR") -> None:
    day = start.date() - timedelta(days=2)
    with tenant_scope(cast.tenant.id):
        save_list(cast.tenant, cast.admin, day, currency, PRICES, start)


def send(cast: Cast, at: datetime, tool: str, pages: int = 0, **members: Any) -> None:
    output = {"status": "ok", "data": {}, "meta": {"pages": pages}}
    send_events(cast.tenant, make_call(started_at=at, tool_name=tool, output=output, **members))
    while units.run_slice(cast.tenant.id):
        pass


def judge(cast: Cast, at: datetime) -> list[Alert]:
    """Judge an instant. Returns the alerts."""
    with tenant_scope(cast.tenant.id):
        evaluate(at + SETTLING)
        return list(Alert.objects.for_tenant(cast.tenant.id).order_by("held_from", "rule_name"))


@pytest.mark.parametrize(
    ("query", "window"), [("", 60), ("trace:trace-*", 60), ("", 720)], ids=["tools", "own", "long"]
)
def test_rule_fires_at_the_exact_sum(acme: Cast, start: datetime, query: str, window: int) -> None:
    price(acme, start)
    watched = rule(query, window_minutes=window)
    save(acme, start - MINUTE, watched)
    for n in range(3):
        send(acme, start + n * MINUTE, "search")
    send(acme, start + 3 * MINUTE, "free")
    send_events(acme.tenant, make_call(started_at=start, tool_name="search", is_open=True))
    step = 15 * MINUTE
    assert judge(acme, start + step) == [], "0.3 is not above 0.3"
    send(acme, start + 16 * MINUTE, "ocr", pages=1)
    (alert,) = judge(acme, start + 2 * step)
    assert (alert.value, alert.threshold) == (0.31, 0.3)
    assert "EUR\xa00.31" in alert.title and "above EUR\xa00.30" in alert.title
    assert alert.title.endswith("1 call without a price")
    assert isinstance(watched.condition, WindowCondition)
    with tenant_scope(acme.tenant.id):
        trial = try_rule(watched.condition, start + 2 * step, back=timedelta(hours=2))
    (episode,) = trial.episodes
    assert trial.at(episode.start) == alert.held_from
    assert (episode.value.value, episode.value.unpriced) == (0.31, 1)


def test_changed_prices_hold_for_windows_of_now(acme: Cast, start: datetime) -> None:
    save(acme, start - MINUTE, rule("tool:search", no_data="fires"))
    assert judge(acme, start) == [], "without calls nothing is spent"
    for n in range(4):
        send(acme, start + n * timedelta(seconds=1), "search")
    (alert,) = judge(acme, start + MINUTE)
    assert "no price for 4 calls" in alert.title
    price(acme, start, "JPY")
    (alert,) = judge(acme, start + 2 * MINUTE)
    assert alert.held_to is None, "they cost 0.4 now"
    with tenant_scope(acme.tenant.id):
        save_list(
            acme.tenant,
            acme.admin,
            start.date() - timedelta(days=2),
            "JPY",
            [ToolPrice("search", Decimal("0.01"))],
            start,
        )
    (alert,) = judge(acme, start + 3 * MINUTE)
    assert alert.held_to == start + 3 * MINUTE
