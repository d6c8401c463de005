"""The list of traces."""

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest
from django.test import Client
from django.urls import reverse

from audit.queries.traces import TraceFilter, prefix_end, trace_page
from tenants.scope import tenant_scope
from tests.support.factories import (
    Cast,
    make_call,
    make_ingest_key,
    send_events,
)
from tests.support.pages import (
    FRAME,
    HOSTILE,
    PARTIAL,
    linked,
    signed_in,
    statements,
    text,
    walked,
)
from tests.support.traces import FAILED_OUTPUT, VIOLATED_GUARD

NOW = datetime.now(UTC)


def send_traces(cast: Cast, count: int) -> None:
    """Send traces `trace-000` (the oldest), `trace-001` and so on, a second apart."""
    send_events(
        cast.tenant,
        (
            event
            for n in range(count)
            for event in make_call(
                trace_id=f"trace-{n:03}", started_at=NOW - timedelta(seconds=600 - n)
            )
        ),
    )


def listed(page: str) -> list[str]:
    return re.findall(r'title="([^"]*)">[^<]*</a></td>', page)


def test_each_row_describes_its_trace(acme: Cast) -> None:
    send_events(
        acme.tenant,
        [
            *make_call(trace_id="t-failed", tool_name="fetch_page", output=FAILED_OUTPUT),
            *make_call(trace_id="t-broken", guard=VIOLATED_GUARD),
            *make_call(trace_id="t-open", tool_name="notify", is_open=True),
            *make_call(trace_id="t-fine", tool_name="read_file"),
        ],
    )
    page = signed_in(acme.editor).get("/traces/").content.decode()
    rows = {
        trace: text(row)
        for row in page.split("<tr>")
        for trace in re.findall(r'title="(t-\w+)"', row)
    }
    assert "1 failed fetch_page UPSTREAM 502 · Bad gateway" in rows["t-failed"]
    assert "1 violation get_weather $.unit ENUM_MISMATCH" in rows["t-broken"]
    assert re.search(r"1 open notify open \d", rows["t-open"])
    assert "ok read_file" in rows["t-fine"]


def test_guard_failure_is_named_by_path_and_code(acme: Cast) -> None:
    failed = {"status": "error", "error": {"type": "VALIDATION", "message": "It breaks."}}
    send_events(
        acme.tenant,
        make_call(output=failed, is_error=True, guard={**VIOLATED_GUARD, "outcome": "failed"}),
    )
    page = text(signed_in(acme.viewer).get("/traces/").content.decode())
    assert "get_weather $.unit ENUM_MISMATCH" in page
    assert "It breaks." not in page


def test_trace_duration_is_unknown_until_a_call_has_ended(acme: Cast) -> None:
    send_events(
        acme.tenant,
        [
            *make_call(trace_id="t-waiting", is_open=True),
            *make_call(trace_id="t-halfway", duration_ms=2_000),
            *make_call(trace_id="t-halfway", is_open=True),
        ],
    )
    page = signed_in(acme.viewer).get("/traces/").content.decode()
    waiting = text(signed_in(acme.viewer).get("/traces/?trace=t-waiting").content.decode())
    assert "1 call — —" in waiting
    assert "0 µs" not in text(page)
    assert "≥ 2.0" in text(page).replace("\xa0", " ")
    assert "no call has ended yet" in text(
        signed_in(acme.viewer).get("/traces/t-waiting").content.decode()
    )


def test_innermost_failure_of_a_chain_is_named(acme: Cast) -> None:
    inside = NOW - timedelta(seconds=50)
    start = NOW - timedelta(seconds=51)
    send_events(
        acme.tenant,
        [
            *make_call(tool_name="plan", output=FAILED_OUTPUT, duration_ms=9_000, started_at=start),
            *make_call(tool_name="fetch_page", output=FAILED_OUTPUT, started_at=inside),
        ],
    )
    page = text(signed_in(acme.viewer).get("/traces/").content.decode())
    assert "2 failed fetch_page UPSTREAM" in page


@pytest.mark.parametrize("state", ["failed", "violation", "open", "ok"])
def test_state_filter_selects_matching_traces(acme: Cast, state: str) -> None:
    send_events(
        acme.tenant,
        [
            *make_call(trace_id="failed", output=FAILED_OUTPUT),
            *make_call(trace_id="violation", guard=VIOLATED_GUARD),
            *make_call(trace_id="open", is_open=True),
            *make_call(trace_id="ok"),
        ],
    )
    answer = signed_in(acme.viewer).get("/traces/", {"state": state})
    assert listed(answer.content.decode()) == [state]


def test_trace_id_prefix_is_matched_literally(acme: Cast) -> None:
    for trace_id in ("a%b", "a%c", "axb", "A%b", "a_b"):
        send_events(acme.tenant, make_call(trace_id=trace_id))
    answer = signed_in(acme.viewer).get("/traces/", {"trace": "a%"})
    assert sorted(listed(answer.content.decode())) == ["a%b", "a%c"]


@pytest.mark.parametrize(
    ("prefix", "end"),
    [("abc", "abd"), ("", ""), ("a\U0010ffff", "b"), ("\U0010ffff", ""), ("\ud7ff", "\ue000")],
)
def test_prefix_end_is_computed(prefix: str, end: str) -> None:
    assert prefix_end(prefix) == end


def test_time_range_counts_from_now(acme: Cast) -> None:
    send_events(acme.tenant, make_call(trace_id="old", started_at=NOW - timedelta(hours=30)))
    send_events(acme.tenant, make_call(trace_id="new"))
    client = signed_in(acme.viewer)
    assert listed(client.get("/traces/", {"range": "24h"}).content.decode()) == ["new"]
    assert listed(client.get("/traces/", {"range": "7d"}).content.decode()) == ["new", "old"]


def test_pages_are_contiguous_in_both_directions(acme: Cast) -> None:
    send_traces(acme, 120)
    client = signed_in(acme.viewer)
    pages = walked(client, "/traces/", "?state=ok")
    forward = [listed(page) for page in pages]
    expected = [f"trace-{n:03}" for n in reversed(range(120))]
    assert [len(part) for part in forward] == [50, 50, 20]
    assert [trace for part in forward for trace in part] == expected
    back = client.get(f"/traces/{linked(pages[-1], 'prev')}").content.decode()
    assert listed(back) == forward[1]


def test_trace_over_two_days_is_one_row_with_both_sums(acme: Cast) -> None:
    midnight = datetime.combine(NOW.date(), datetime.min.time(), UTC)
    send_events(
        acme.tenant,
        [
            *make_call(tool_name="before", started_at=midnight - timedelta(seconds=2)),
            *make_call(tool_name="after", started_at=midnight, output=FAILED_OUTPUT),
        ],
    )
    with tenant_scope(acme.tenant.id):
        (trace,) = trace_page(TraceFilter()).traces
        assert (trace.started_count, trace.failed_count) == (2, 1)
        assert trace.first_tool_name == "before"
        assert trace.duration_us == 2_020_000
        assert len(trace_page(TraceFilter(state="failed")).traces) == 1
        assert (
            len(trace_page(TraceFilter(state="ok")).traces) == 1
        )  # the day before had no failures


def test_search_for_a_rare_state_stops_at_the_scan_limit_and_continues(acme: Cast) -> None:
    send_traces(acme, 30)
    with tenant_scope(acme.tenant.id):
        first = trace_page(TraceFilter(state="failed"), scan_limit=20)
        assert (first.traces, first.searched_until) == ([], NOW - timedelta(seconds=590))
        assert first.older is not None
        rest = trace_page(TraceFilter(state="failed"), before=first.older, scan_limit=20)
        assert (rest.traces, rest.searched_until, rest.older) == ([], None, None)


def test_htmx_request_gets_the_list_without_the_frame(acme: Cast) -> None:
    send_events(acme.tenant, make_call())
    client = signed_in(acme.viewer)
    page, part = client.get("/traces/"), client.get("/traces/", headers=PARTIAL)
    assert b"<html" in page.content
    assert part.content.decode().lstrip().startswith('<div id="trace-list"')
    assert listed(page.content.decode()) == listed(part.content.decode()) == ["trace-123"]
    assert "HX-Request" in page.headers["Vary"]


def test_history_restore_gets_the_whole_page(acme: Cast) -> None:
    headers = PARTIAL | {"HX-History-Restore-Request": "true"}
    assert b"<html" in signed_in(acme.viewer).get("/traces/", headers=headers).content


def test_page_without_calls_explains_how_to_send_one(acme: Cast) -> None:
    page = text(signed_in(acme.viewer).get("/traces/").content.decode())
    assert "No tool calls yet" in page
    assert "First steps" in page


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("trace=zzz", "No trace id starts with zzz"),
        ("state=failed", "No trace has failed calls"),
        ("range=1h&state=violation", "No trace has schema violations since"),
        ("before=2020-01-01T00:00:00%2B00:00,x", "There are no older traces"),
    ],
)
def test_empty_result_names_the_filter(acme: Cast, query: str, expected: str) -> None:
    send_events(acme.tenant, make_call())
    page = text(signed_in(acme.viewer).get(f"/traces/?{query}").content.decode())
    assert expected in page
    assert "Show all traces" in page


@pytest.mark.parametrize(
    "query", ["state=nonsense", "range=nonsense", "trace=a%00b", f"trace={'x' * 200}"]
)
def test_invalid_filter_matches_nothing_and_is_reported(acme: Cast, query: str) -> None:
    send_events(acme.tenant, make_call())
    page = signed_in(acme.viewer).get(f"/traces/?{query}").content.decode()
    assert listed(page) == []
    assert "Invalid filter" in page
    assert "Nothing was searched" in page


@pytest.mark.parametrize(
    "query",
    [
        "before=nonsense",
        "before=2026-13-45T99:00:00Z,x",
        "after=2026-11-20,x",
        "before=2026-11-20T10:00:00Z,a%00b",
    ],
)
def test_invalid_cursor_shows_the_first_page(acme: Cast, query: str) -> None:
    send_events(acme.tenant, make_call())
    answer = signed_in(acme.viewer).get(f"/traces/?{query}")
    assert listed(answer.content.decode()) == ["trace-123"]


@pytest.mark.parametrize(
    "trace_id",
    ["a/b", "..", ".", "100%", "%2F", "a?b#c", 'q"uote', "ünï", "a b+c", "//x//", "\\", "a;b,c"],
)
def test_any_trace_id_has_a_working_url(acme: Cast, trace_id: str) -> None:
    send_events(acme.tenant, make_call(trace_id=trace_id))
    client = signed_in(acme.viewer)
    address = reverse("trace_detail", args=[trace_id])
    assert address in client.get("/traces/").content.decode()
    assert "/" not in address.removeprefix("/traces/")
    assert client.get(address).status_code == 200


@pytest.mark.parametrize(
    "hostile",
    HOSTILE,
)
def test_hostile_text_is_escaped(acme: Cast, hostile: str) -> None:
    output = {"status": "error", "error": {"type": "FATAL", "message": hostile}, "meta": {}}
    call = make_call(trace_id=hostile, tool_name=hostile, run_id=hostile, output=output)
    send_events(acme.tenant, call)
    page = signed_in(acme.viewer).get("/traces/").content.decode()
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "<td" in page
    shown = page.split("<tbody>")[1]
    assert "\u202e" not in shown


def test_traces_are_not_visible_to_another_tenant(acme: Cast, globex: Cast) -> None:
    send_events(acme.tenant, make_call(trace_id="secret-trace"))
    page = signed_in(globex.admin).get("/traces/").content.decode()
    assert "secret-trace" not in page


def test_anonymous_user_is_redirected_to_sign_in(acme: Cast) -> None:
    answer = Client().get("/traces/?state=failed")
    assert answer.headers["Location"] == f"/login?next={quote('/traces/?state=failed')}"


def test_list_rejects_post(acme: Cast) -> None:
    assert signed_in(acme.viewer).post("/traces/").status_code == 405


def test_full_page_uses_a_fixed_number_of_statements(acme: Cast) -> None:
    key = make_ingest_key(acme.tenant)
    for n in range(3):
        send_events(acme.tenant, make_call(trace_id=f"f{n}", output=FAILED_OUTPUT), key=key)
    client = signed_in(acme.viewer)
    with statements(
        FRAME + 6
    ):  # chosen columns, views, rows, how far was searched, their days, reasons
        client.get("/traces/?state=failed")
    send_traces(acme, 60)
    with statements(FRAME + 5):
        client.get("/traces/")
