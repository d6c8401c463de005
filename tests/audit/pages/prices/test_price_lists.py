"""The pages and the API of price lists: what is saved, what is refused, and what is recorded."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from audit.models import PriceList, UnitPath
from audit.prices import units
from tenants.keys import create_key
from tenants.models import Action, Scope
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.pages import signed_in

DAY = date(2026, 1, 1)


def form(*prices: tuple[str, str, str], **members: str) -> dict[str, str]:
    """What a browser sends for these rows of tool, amount and path."""
    sent = {"price-TOTAL_FORMS": str(len(prices)), "price-INITIAL_FORMS": "0"}
    sent |= {"model-TOTAL_FORMS": "0", "model-INITIAL_FORMS": "0"}
    for n, row in enumerate(prices):
        names = (f"price-{n}-{name}" for name in ("tool", "amount", "path"))
        sent |= dict(zip(names, row, strict=True))
    return sent | {"holds_from": DAY.isoformat(), "currency": "EUR"} | members


def stored(cast: Cast) -> dict[str, Any]:
    with tenant_scope(cast.tenant.id):
        lists = PriceList.objects.for_tenant(cast.tenant.id)
        return {str(one.holds_from): one.prices["tools"] for one in lists}


def actions(cast: Cast) -> list[Action]:
    with tenant_scope(cast.tenant.id):
        done = Action.objects.filter(tenant=cast.tenant, verb__startswith="price_list.")
        return list(done.order_by("at"))


def test_admin_creates_changes_and_deletes_a_list(acme: Cast) -> None:
    client = signed_in(acme.admin)
    rows = [("search", "0.0040", ""), ("", "", ""), ("ocr", "12", "output.meta.pages")]
    assert client.post("/settings/prices/new", form(*rows)).status_code == 302
    assert stored(acme) == {
        "2026-01-01": [
            {"tool": "ocr", "amount": "12", "path": "output.meta.pages"},
            {"tool": "search", "amount": "0.004", "path": ""},
        ]
    }
    page = client.get("/settings/prices/2026-01-01").content.decode()
    assert 'value="0.004"' in page
    client.post("/settings/prices/2026-01-01", form(("search", "0.005", "")))
    client.post("/settings/prices/2026-01-01", form(("search", "0.005", "")))
    assert stored(acme) == {"2026-01-01": [{"tool": "search", "amount": "0.005", "path": ""}]}
    client.post("/settings/prices/2026-01-01/delete")
    assert stored(acme) == {}
    done = actions(acme)
    kinds = ["price_list.create", "price_list.change", "price_list.delete"]
    assert [one.verb for one in done] == kinds  # saving the same again is none
    assert done[1].details["tools"] == [{"tool": "search", "amount": "0.005", "path": ""}]
    assert [list(one.rows) for one in done] == [["price_list/2026-01-01"]] * 3
    assert done[2].rows == {"price_list/2026-01-01": None}


@pytest.mark.parametrize(
    ("row", "members", "says"),
    [
        (("search", "", ""), {}, "Enter an amount, or empty the row."),
        (("search", "0,5", ""), {}, "Enter an amount such as 0.004"),
        (("search", "-1", ""), {}, "Enter an amount such as 0.004"),
        (("search", "1e9", ""), {}, "Enter an amount such as 0.004"),
        (("search", "0.0000000000001", ""), {}, "at most 12 decimals"),
        (("", "1", ""), {}, "Enter a tool, or empty the row."),
        (("search", "1", "args.city"), {}, "Write the path of a number in the result"),
        (("search", "1", "meta.pages"), {}, "Write the path of a number in the result"),
        (("s" * 257, "1", ""), {}, "1 to 256 characters"),
        (("search", "1", ""), {"currency": "EURO"}, "at most 3 characters"),
        (("search", "1", ""), {"currency": "E1R"}, "three capital letters"),
        (("search", "1", ""), {"holds_from": "1999-12-31"}, "2000 to 2999"),
        (("search", "1", ""), {"holds_from": "yesterday"}, "Enter a valid date"),
    ],
)
def test_what_cannot_be_a_price_is_shown_with_the_reason(
    acme: Cast, row: tuple[str, str, str], members: dict[str, str], says: str
) -> None:
    answer = signed_in(acme.admin).post("/settings/prices/new", form(row, **members))
    assert answer.status_code == 200
    page = answer.content.decode()
    assert says in page
    if row[0]:
        assert f'value="{row[0]}"' in page  # what was entered stays
    assert stored(acme) == {}


def test_tool_with_two_prices_and_second_currency_are_refused(acme: Cast) -> None:
    client = signed_in(acme.admin)
    twice = client.post("/settings/prices/new", form(("a", "1", ""), ("a", "2", "")))
    assert "a has two prices." in twice.content.decode()
    client.post("/settings/prices/new", form(("a", "1", "")))
    again = client.post("/settings/prices/new", form(("a", "1", "")))
    assert "A list already holds from this day." in again.content.decode()
    other = form(("a", "1", ""), holds_from="2026-02-01", currency="usd")
    assert "the others are in EUR" in client.post("/settings/prices/new", other).content.decode()
    assert list(stored(acme)) == ["2026-01-01"]


def test_new_list_begins_with_the_prices_of_the_latest(acme: Cast) -> None:
    client = signed_in(acme.admin)
    client.post("/settings/prices/new", form(("a", "1", ""), ("b", "2", "output.n")))
    page = client.get("/settings/prices/new").content.decode()
    for value in ('value="a"', 'value="output.n"', 'value="EUR"'):
        assert value in page


def test_units_are_counted_before_their_prices_are_used(acme: Cast) -> None:
    today = datetime.now(UTC).date()
    client = signed_in(acme.admin)
    output = {"status": "ok", "data": {}, "meta": {"pages": 3, "words": 10}}
    at = datetime.now(UTC) - timedelta(minutes=1)
    send_events(acme.tenant, make_call(tool_name="ocr", output=output, started_at=at))

    def save(path: str) -> None:
        sent = form(("ocr", "0.10", path), holds_from=(today - timedelta(days=1)).isoformat())
        address = "/settings/prices/new"
        if stored(acme):
            address = f"/settings/prices/{today - timedelta(days=1)}"
        assert client.post(address, sent).status_code == 302

    def cost() -> str:
        answer = Client().get("/api/v1/costs?range=1h", headers=headers(acme, Scope.READ))
        document = answer.json()
        return str(document["total"] and document["total"]["amount"])

    save("output.meta.pages")
    assert "counting units" in client.get("/settings/prices").content.decode()
    assert cost() == "None"  # no list is in use yet
    while units.run_slice(acme.tenant.id):
        pass
    assert cost() == "0.3"
    assert "holds now" in client.get("/settings/prices").content.decode()
    save("output.meta.words")
    assert cost() == "0.3"  # by the prices of before
    assert "0 % of the log is read" in client.get("/costs/").content.decode()
    while units.run_slice(acme.tenant.id):
        pass
    assert cost() == "1"
    while units.run_slice(acme.tenant.id):
        pass
    with tenant_scope(acme.tenant.id):
        paths = UnitPath.objects.for_tenant(acme.tenant.id)
        assert [one.path for one in paths] == ["output.meta.words"]


def headers(cast: Cast, *scopes: Scope) -> dict[str, str]:
    with tenant_scope(cast.tenant.id):
        key = create_key(cast.tenant, "key", list(scopes), owner=cast.admin)[1]
    return {"Authorization": f"Bearer {key}"}


def test_programs_do_the_same(acme: Cast) -> None:
    reader, admin = headers(acme, Scope.READ), headers(acme, Scope.READ, Scope.ADMIN)
    client = Client()
    address = "/api/v1/price-lists/2026-01-01"
    body = {
        "currency": "EUR",
        "prices": [
            {"tool": "a", "amount": "0.50"},
            {"tool": "b", "amount": "1", "path": "output.n"},
        ],
    }

    def put(sent: object, **chosen: Any) -> Any:
        with_headers = chosen.get("headers", admin)
        where = chosen.get("address", address)
        return client.put(where, sent, content_type="application/json", headers=with_headers)

    assert put(body, headers=reader).status_code == 403
    first = put(body).json()
    assert first["prices"] == [
        {"tool": "a", "amount": "0.5", "path": None},
        {"tool": "b", "amount": "1", "path": "output.n"},
    ]
    assert put(body).json() == first
    assert len(actions(acme)) == 1
    assert client.get(address, headers=reader).json() == first
    listed = client.get("/api/v1/price-lists", headers=reader).json()
    assert listed == {"items": [first], "next": None}
    for wrong, code in (
        ({"currency": "EUR"}, 400),
        ({"currency": "EUR", "prices": [{"tool": "a", "amount": 0.5}]}, 400),
        ({"currency": "EUR", "prices": [{"tool": "a", "amount": "x"}]}, 422),
        ({"currency": "EUR", "prices": [{"tool": "a\ud800", "amount": "1"}]}, 400),
        ({"currency": "EUR", "prices": [{"tool": "a", "amount": "1", "path": "x"}]}, 422),
        ({"currency": "euro", "prices": []}, 422),
    ):
        assert put(wrong).status_code == code, wrong
    assert put(body, address="/api/v1/price-lists/20260101").status_code == 422
    assert client.get("/api/v1/price-lists/today", headers=reader).status_code == 404
    assert client.delete(address, headers=admin).json() == first
    assert client.delete(address, headers=admin).status_code == 404


def models(*prices: tuple[str, str, str, str, str]) -> dict[str, str]:
    """A form's members for these rows of model, input, cached, written and output."""
    sent = {"model-TOTAL_FORMS": str(len(prices))}
    for n, row in enumerate(prices):
        names = ("model", "input", "cached", "written", "output")
        sent |= {f"model-{n}-{name}": value for name, value in zip(names, row, strict=True)}
    return sent


def test_models_have_prices_in_pages_and_over_the_api(acme: Cast) -> None:
    client = signed_in(acme.admin)
    rows = models(("gpt-5", "1.250", "0.1", "", "10"), ("", "", "", "", ""))
    assert client.post("/settings/prices/new", form(**rows)).status_code == 302
    expected = [
        {"model": "gpt-5", "input": "1.25", "cached": "0.1", "written": None, "output": "10"}
    ]
    reader, admin = headers(acme, Scope.READ), headers(acme, Scope.READ, Scope.ADMIN)
    address = "/api/v1/price-lists/2026-01-01"
    assert client.get(address, headers=reader).json()["models"] == expected
    page = client.get("/settings/prices/2026-01-01").content.decode()
    assert 'value="1.25"' in page
    assert "gpt-5" in client.get("/settings/prices").content.decode()
    sent = {
        "currency": "EUR",
        "prices": [],
        "models": [{"model": "m", "input": "1", "output": "2"}],
    }
    answer = Client().put(address, sent, content_type="application/json", headers=admin)
    assert answer.json()["models"] == [
        {"model": "m", "input": "1", "cached": None, "written": None, "output": "2"}
    ]
    (_, changed) = actions(acme)
    assert [one["model"] for one in changed.details["models"]] == ["m"]
    for wrong in ({"model": "m", "input": "1", "output": "x"}, {"model": "m", "input": "1"}):
        refused = Client().put(
            address, sent | {"models": [wrong]}, content_type="application/json", headers=admin
        )
        assert refused.status_code in {400, 422}


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (("gpt-5", "", "", "", "1"), "Enter an amount, or empty the row."),
        (("gpt-5", "1", "", "", ""), "Enter an amount, or empty the row."),
        (("gpt-5", "1", "x", "", "1"), "Enter an amount such as 0.004"),
        (("", "1", "", "", "1"), "Enter a model, or empty the row."),
        (("m" * 257, "1", "", "", "1"), "1 to 256 characters"),
    ],
)
def test_what_cannot_be_a_price_of_a_model_is_shown_with_the_reason(
    acme: Cast, row: tuple[str, str, str, str, str], says: str
) -> None:
    answer = signed_in(acme.admin).post("/settings/prices/new", form(**models(row)))
    assert answer.status_code == 200
    assert says in answer.content.decode()
    assert stored(acme) == {}


def test_a_model_named_twice_is_refused(acme: Cast) -> None:
    row = ("gpt-5", "1", "", "", "2")
    answer = signed_in(acme.admin).post("/settings/prices/new", form(**models(row, row)))
    assert "gpt-5 is named twice." in answer.content.decode()
