"""Exports of calls: equal to the list, safe in a spreadsheet, counted, in bounded memory."""

import csv
import io
import json
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from audit.exports import calls
from audit.exports.call_document import EXPORTED
from audit.exports.csv_file import is_formula
from audit.exports.forms import Form
from audit.prices import units
from audit.prices.lists import save_list
from audit.queries.call_filter import CallFilter
from audit.queries.price_lists import ToolPrice
from tenants.models import Action
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.pages import signed_in

NOW = datetime.now(UTC)


def send_numbered(cast: Cast, count: int) -> None:
    events = (
        event
        for n in range(count)
        for event in make_call(
            tool_name=f"tool-{n:03}", started_at=NOW - timedelta(seconds=999 - n)
        )
    )
    send_events(cast.tenant, events)


def exported(cast: Cast, kind: str, query: str = "") -> bytes:
    answer = signed_in(cast.viewer).get(f"/calls/export.{kind}", {"q": query})
    assert answer.status_code == 200
    assert answer.streaming
    return bytes(answer.getvalue())


def test_ndjson_contains_the_listed_calls_and_their_count(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "CHUNK", 7)
    send_numbered(acme, 30)
    lines = [json.loads(line) for line in exported(acme, "ndjson", "tool:tool-01*").splitlines()]
    assert lines.pop() == {"count": 10}
    assert [line["tool_name"] for line in lines] == [
        f"tool-{n:03}" for n in reversed(range(10, 20))
    ]
    assert all(tuple(line) == EXPORTED for line in lines)


def test_rare_call_is_exported_from_any_position(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("audit.queries.call_list._CHUNK", 5)
    send_numbered(acme, 30)
    lines = exported(acme, "ndjson", "version:none").splitlines()
    assert [json.loads(line) for line in lines] == [{"count": 0}]
    lines = exported(acme, "ndjson", "tool:tool-000").splitlines()
    assert len(lines) == 2


def test_csv_has_a_header_and_a_count(acme: Cast) -> None:
    send_numbered(acme, 3)
    rows = list(csv.reader(io.StringIO(exported(acme, "csv").decode())))
    assert tuple(rows[0]) == EXPORTED
    assert [row[EXPORTED.index("tool_name")] for row in rows[1:-1]] == [
        "tool-002",
        "tool-001",
        "tool-000",
    ]
    assert rows[-1] == ["# count", "3"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "start",
    ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", " =", "\xa0=", "\u3000＠"],
)
def test_no_csv_cell_is_a_formula(acme: Cast, start: str) -> None:
    hostile = f'{start}HYPERLINK("http://evil.example")'
    error = {"type": hostile, "code": hostile, "message": hostile}
    failed = {"status": "error", "error": error, "meta": {"took_ms": 1}}
    send_events(
        acme.tenant,
        make_call(tool_name=hostile, trace_id=hostile, run_id=hostile, output=failed),
    )
    rows = list(csv.reader(io.StringIO(exported(acme, "csv").decode(), newline="")))
    cells = dict(zip(rows[0], rows[1], strict=True))
    for name in ("tool_name", "trace_id", "run_id", "error_type", "error_code"):
        assert cells[name] == f"'{hostile}", name
    assert not any(is_formula(cell) for cell in rows[1])


def test_export_is_logged_with_user_and_query(acme: Cast) -> None:
    exported(acme, "csv", "state:ok  tool:a")
    with tenant_scope(acme.tenant.id):
        action = Action.objects.get(tenant_id=acme.tenant.id, verb="call.export")
    assert (action.user_id, action.subject) == (acme.viewer.pk, "csv")
    assert action.details == {"query": "state:ok tool:a"}


def test_exports_with_error_messages_are_logged_for_each_query(acme: Cast) -> None:
    """A second export within a minute used to leave no entry."""
    for user in (acme.editor, acme.viewer):
        browser = signed_in(user)
        for query in ("tool:a", "tool:b", "tool:b"):
            assert browser.get("/calls/export.csv", {"q": query}).status_code == 200
    with tenant_scope(acme.tenant.id):
        actions = Action.objects.filter(tenant_id=acme.tenant.id, verb="call.export")
        queries = {
            user: {one.details["query"] for one in actions if one.user_id == user.pk}
            for user in (acme.editor, acme.viewer)
        }
    assert queries[acme.editor] == {"tool:a", "tool:b"}
    assert "tool:a" in queries[acme.viewer]


@pytest.mark.parametrize(
    "path",
    [
        "/calls/export.csv?q=tool:",
        "/violations/export.csv?n=",
        "/latency/export.csv?n=",
        "/tools/export.json?n=",
    ],
)
def test_repeated_exports_add_at_most_two_ledger_entries(acme: Cast, path: str) -> None:
    client = signed_in(acme.viewer)
    with tenant_scope(acme.tenant.id):
        before = Action.objects.filter(tenant_id=acme.tenant.id).count()
    for number in range(12):
        assert client.get(f"{path}{number}").status_code == 200
    client.head(f"{path}head")
    with tenant_scope(acme.tenant.id):
        added = Action.objects.filter(tenant_id=acme.tenant.id).count() - before
    assert 1 <= added <= 2  # a minute may have ended meanwhile


def test_invalid_query_or_format_exports_nothing(acme: Cast) -> None:
    send_numbered(acme, 3)
    client = signed_in(acme.viewer)
    answer = client.get("/calls/export.csv?q=stat:ok")
    assert answer.status_code == 400
    message = "Invalid query. Nothing was exported. At character 1: Unknown filter “stat”."
    assert answer.content.decode() == f"{message} Did you mean state?"
    assert client.get("/calls/export.xlsx").status_code == 404


@pytest.mark.sampled("large or many", 2)
@pytest.mark.slow
def test_export_memory_does_not_grow_with_the_number_of_calls() -> None:
    """The peak memory of writing 200 chunks equals that of writing 20."""
    call = dict.fromkeys(EXPORTED, "x" * 30)

    def chunks(number: int) -> Iterator[list[dict[str, Any]]]:
        return ([dict(call) for _ in range(100)] for _ in range(number))

    def peak(number: int, form: Form) -> int:
        tracemalloc.start()
        for _ in form.write(chunks(number)):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    for name in ("ndjson", "csv"):
        form = calls.FORMS[name]
        peak(2, form)  # allocations that happen once
        assert peak(200, form) < 1.2 * peak(20, form), name


def test_chunks_are_read_lazily(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "CHUNK", 10)
    send_numbered(acme, 30)
    stream = calls.chunks(acme.tenant.id, CallFilter(), NOW, with_messages=True)
    assert len(next(stream)) == 10
    send_events(acme.tenant, make_call(tool_name="newer"))  # no tenant scope stays open
    assert sum(len(chunk) for chunk in stream) == 20


def test_parquet_contains_the_same_rows_with_typed_columns(acme: Cast) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    from pyarrow.parquet import read_table

    send_numbered(acme, 3)
    table = read_table(io.BytesIO(exported(acme, "parquet")))
    assert table.num_rows == 3
    assert table.column_names == list(EXPORTED)
    assert table.schema.field("started_at").type == pyarrow.timestamp("us", tz="UTC")
    assert table.column("tool_name").to_pylist() == ["tool-002", "tool-001", "tool-000"]
    assert table.column("started_at")[0].as_py() == NOW - timedelta(seconds=997)
    assert table.column("duration_ms").to_pylist() == [20.0] * 3
    empty = read_table(io.BytesIO(exported(acme, "parquet", "tool:none")))
    assert empty.num_rows == 0


def test_exports_have_the_cost_of_each_call_with_a_price(acme: Cast) -> None:
    """Calls whose units are not counted, that are open, or whose tool no list names have none."""
    day = (NOW - timedelta(days=1)).date()
    prices = [
        ToolPrice("search", Decimal("0.004")),
        ToolPrice("read", Decimal("0.0015"), "output.meta.pages"),
    ]
    with tenant_scope(acme.tenant.id):
        save_list(acme.tenant, acme.admin, day, "EUR", prices, NOW)
    output = {"status": "ok", "data": 1, "meta": {"took_ms": 1, "pages": 12}}
    events = [
        *make_call(tool_name="search", is_error=True),
        *make_call(tool_name="search", is_open=True),
        *make_call(tool_name="read", output=output),
        *make_call(tool_name="read"),
        *make_call(tool_name="other"),
    ]
    send_events(acme.tenant, events)
    while units.run_slice(acme.tenant.id, seconds=0):
        pass
    rows = [json.loads(line) for line in exported(acme, "ndjson").splitlines()][:-1]
    assert sorted(
        (row["tool_name"], row["state"], row["cost"], row["currency"])
        for row in rows
        if row["cost"]
    ) == [
        ("read", "ok", "0.018", "EUR"),
        ("search", "failed", "0.004", "EUR"),
    ]
    assert {row["currency"] for row in rows if row["cost"] is None} == {None}
    table = list(csv.DictReader(io.StringIO(exported(acme, "csv").decode())))
    assert sorted(row["cost"] or "" for row in table[:-1]) == ["", "", "", "0.004", "0.018"]
