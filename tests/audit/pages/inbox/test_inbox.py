"""The inbox of rejected events: reasons; retrying, discarding and exporting them."""

import csv
import io
import json
import re
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import ProgrammingError, connection, connections
from django.test import Client

from audit import sql
from audit.events.body import Line
from audit.events.candidates import read_lines
from audit.intake import ingest
from audit.models import Batch, Invocation, RejectedEvent
from audit.queries.inbox import InboxFilter, first_id_of, inbox_page
from audit.show import raw_view
from audit.work import inbox
from tenants.models import Action, User
from tenants.scope import tenant_scope
from tests.support.event_requests import lines, post
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
    signed_in,
    statements,
    text,
)
from tests.support.recount import assert_consistent

START, END = 0, 1


def refuse(cast: Cast, *raw: bytes, code: str | None = None) -> list[RejectedEvent]:
    """Post lines that must all be rejected; return their rows of the inbox, in order."""
    answer = post(make_ingest_key(cast.tenant), b"\n".join(raw))
    assert answer.status_code == 200, answer.content
    rejected = answer.json()["rejected"]
    assert len(rejected) == len(raw)
    assert code is None or {each["code"] for each in rejected} == {code}
    with tenant_scope(cast.tenant.id):
        rows = RejectedEvent.objects.for_tenant(cast.tenant.id)
        return list(rows.filter(batch_id=answer.json()["batch_id"]).order_by("line"))


def conflict(cast: Cast, **members: Any) -> tuple[list[dict[str, Any]], RejectedEvent]:
    """A stored call and its rejected second end, which differs in `members`."""
    call = make_call(tool_name="get_weather")
    send_events(cast.tenant, call)
    (row,) = refuse(cast, json.dumps(call[END] | members).encode(), code="conflict")
    return call, row


def reread(row: RejectedEvent) -> RejectedEvent:
    with tenant_scope(row.tenant_id):
        return RejectedEvent.objects.for_tenant(row.tenant_id).get(id=row.id)


def shown(user: User, path: str, **extra: Any) -> str:
    answer = signed_in(user).get(path, **extra)
    assert answer.status_code == 200
    return answer.content.decode()


def act(user: User, row: RejectedEvent, action: str, **data: str) -> str:
    """Submit a form of the event's page, and return the page it redirects to."""
    answer = signed_in(user).post(f"/inbox/{row.id}/{action}", data, follow=True)
    assert answer.status_code == 200
    return text(answer.content.decode())


def late_start() -> dict[str, Any]:
    """A start in the future, beyond the clock difference that is accepted for now."""
    return make_call(is_open=True, started_at=datetime.now(UTC) + timedelta(days=2))[START]


# the list


def test_each_event_shows_its_rejection_reason(acme: Cast) -> None:
    conflict(acme, duration_ms=5.0)
    refuse(acme, b'{"type": "toolExecutionStart", oops')
    page = text(shown(acme.editor, "/inbox/"))
    assert "Conflict another event of this call and type" in page
    assert re.search(r"Not JSON Invalid JSON: .* at line 1 column 32", page)
    assert '"toolExecutionStart", oops' in page


def test_viewer_sees_reasons_without_payloads(acme: Cast) -> None:
    call = make_call(trace_id="secret-city", is_open=True)[START] | {"started_at": "never"}
    (row,) = refuse(acme, json.dumps(call).encode(), code="invalid_event")
    for path in ("/inbox/", f"/inbox/{row.id}"):
        assert "secret-city" in shown(acme.editor, path)
        page = shown(acme.viewer, path)
        assert "secret-city" not in page
        assert "Invalid event" in page
    assert (
        "<form" not in shown(acme.viewer, f"/inbox/{row.id}").split("<main")[1].split("</main>")[0]
    )
    assert "export" not in shown(acme.viewer, "/inbox/")


def test_navigation_shows_the_number_of_waiting_events(acme: Cast) -> None:
    count = re.compile(r'class="nav-count is-violation" title="\d+ to review">(\d+)<')
    assert count.search(shown(acme.viewer, "/traces/")) is None
    first, _ = refuse(acme, b"{", b"[")
    assert count.findall(shown(acme.viewer, "/traces/")) == ["2"]
    act(acme.editor, first, "discard", reason="a test")
    assert count.findall(shown(acme.viewer, "/tools/")) == ["1"]


def test_events_are_filtered_by_code_time_and_resolution(acme: Cast) -> None:
    conflict(acme, duration_ms=5.0)
    broken, discarded = refuse(acme, b"{", b"[1")
    act(acme.editor, discarded, "discard", reason="a test")

    def listed(query: str) -> set[str]:
        return set(re.findall(r'href="/inbox/([0-9a-f-]{36})"', shown(acme.viewer, query)))

    with tenant_scope(acme.tenant.id):
        every = RejectedEvent.objects.for_tenant(acme.tenant.id)
        codes = {str(row.id): row.code for row in every}
    conflicts = {pk for pk, code in codes.items() if code == "conflict"}
    assert listed("/inbox/") == {*conflicts, str(broken.id)}
    assert listed("/inbox/?code=conflict") == conflicts
    assert listed("/inbox/?code=not_json&state=all") == {str(broken.id), str(discarded.id)}
    assert listed("/inbox/?state=discarded") == {str(discarded.id)}
    assert listed("/inbox/?range=1h&state=all") == set(codes)
    assert "No matching events" in shown(acme.viewer, "/inbox/?code=in_future")


def test_events_older_than_the_range_are_excluded(acme: Cast) -> None:
    (row,) = refuse(acme, b"{")
    with tenant_scope(acme.tenant.id):
        for minutes, expected in ((5, 1), (-5, 0)):
            since = datetime.now(UTC) - timedelta(minutes=minutes)
            page = inbox_page(InboxFilter(since=since), with_raw=False)
            assert len(page.rows) == expected
    assert first_id_of(row.received_at) < row.id


def test_pages_are_contiguous_in_both_directions(acme: Cast) -> None:
    refuse(acme, *(b"{ %d" % n for n in range(120)))
    client = signed_in(acme.viewer)

    def ids(page: str) -> list[str]:
        return re.findall(r'href="/inbox/([0-9a-f-]{36})"', page)

    def link(page: str, way: str) -> str | None:
        match = re.search(rf'rel="{way}" href="([^"]+)"', page)
        return None if match is None else "/inbox/" + match[1].replace("&amp;", "&")

    path: str | None = "/inbox/"
    pages: list[str] = []
    while path is not None:
        pages.append(client.get(path).content.decode())
        path = link(pages[-1], "next")
    assert [len(ids(page)) for page in pages] == [50, 50, 20]
    assert len({pk for page in pages for pk in ids(page)}) == 120
    back = link(pages[2], "prev")
    assert back is not None
    assert ids(client.get(back).content.decode()) == ids(pages[1])


def test_empty_inbox_is_explained(acme: Cast) -> None:
    assert "No waiting events" in shown(acme.viewer, "/inbox/")
    assert "<html" not in shown(acme.viewer, "/inbox/", headers=PARTIAL)


@pytest.mark.parametrize("query", ["before=x", "state=odd", "range=9y", "after=%00", "code=%00"])
def test_invalid_parameters_are_reported_and_nothing_is_listed(acme: Cast, query: str) -> None:
    refuse(acme, b"{")
    page = text(shown(acme.viewer, f"/inbox/?{query}"))
    assert "Invalid filter" in page
    assert "Nothing was searched" in page
    assert "1 byte" not in page


def test_pages_use_a_fixed_number_of_statements(acme: Cast) -> None:
    refuse(acme, *(b"{ %d" % n for n in range(60)))
    _, row = conflict(acme, duration_ms=5.0)
    client = signed_in(acme.editor)
    view_recorded = 1  # is recorded
    with statements(FRAME + 1 + view_recorded):
        client.get("/inbox/")
    # The event, its call's day, the call, the parent span, the log.
    with statements(FRAME + 5 + view_recorded):
        client.get(f"/inbox/{row.id}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        ({"state": "", "code": ""}, "rejected_event_tenant_open_idx"),
        ({"state": "all", "code": "conflict"}, "rejected_event_tenant_code_idx"),
        ({"state": "all", "code": ""}, "rejected_event_pkey"),
    ],
)
def test_list_query_uses_an_index_under_row_level_security(
    acme: Cast, wanted: dict[str, str], index: str
) -> None:
    # In an empty table all indexes cost the same, so the plan would be arbitrary.
    conflict(acme, duration_ms=5.0)
    refused = refuse(acme, *(b"{ %d" % n for n in range(400)))
    with tenant_scope(acme.tenant.id):
        for row in refused[100:]:
            inbox.discard(acme.tenant, acme.admin, row.id, "no use", datetime.now(UTC))
    with connections["owner"].cursor() as cursor:
        cursor.execute("ANALYZE rejected_event")
    parameters: dict[str, Any] = {
        "tenant_id": acme.tenant.id,
        "before": uuid.UUID(int=2**128 - 1),
        "first_id": uuid.UUID(int=0),
        "since": datetime(2000, 1, 1, tzinfo=UTC),
        "until": datetime(2999, 1, 1, tzinfo=UTC),
        "with_raw": False,
        "excerpt_bytes": 9,
        "page_limit": 50,
        **wanted,
    }
    with tenant_scope(acme.tenant.id), connection.cursor() as cursor:
        for kind in ("seqscan", "bitmapscan", "sort"):
            cursor.execute(f"SET LOCAL enable_{kind} = off")
        cursor.execute("EXPLAIN " + sql.QUERIES["inbox_page"], parameters)
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert f"Index Scan Backward using {index}" in plan, plan
    assert "id < " in re.findall(r"Index Cond: .*", plan)[0]


# one line


def test_contract_violations_are_marked_in_the_event(acme: Cast) -> None:
    guard = {"strategy": "throw", "outcome": "failed", "violations": [{"path": "$"}]}
    end = make_call(guard=guard)[END] | {"duration_ms": -1}
    del end["started_at"]
    (row,) = refuse(acme, json.dumps(end).encode(), code="invalid_event")
    page = text(shown(acme.editor, f"/inbox/{row.id}"))
    assert re.search(r'"duration_ms" : -1 , greater_than_equal', page)
    assert "started_at: missing missing Field required" in page
    assert "code: missing missing Field required" in page
    assert "If resent now rejected" in page
    assert "Differences from the stored event" not in page


@pytest.mark.parametrize(
    ("raw", "at", "seen"),
    [
        (b'{"type": "gap", "reason": "caf\xe9"}', 30, "\ufffd"),
        (b'{"a": "\xc3\xa9", oops}', 12, "oops"),
        (b'{"a": 1', 7, "end of line"),
        (b"plain words", 0, "plain words"),
    ],
)
def test_position_of_a_json_error_is_shown(acme: Cast, raw: bytes, at: int, seen: str) -> None:
    (row,) = refuse(acme, raw)
    page = text(shown(acme.editor, f"/inbox/{row.id}"))
    assert f"Parse error at byte {at} :" in page
    assert seen in page


def test_binary_event_is_shown_as_hex_dump(acme: Cast) -> None:
    (row,) = refuse(acme, b"\xff\x00<script>\x1b[31m")
    page = shown(acme.editor, f"/inbox/{row.id}")
    assert (
        "00000000  ff 00 3c 73 63 72 69 70 74 3e 1b 5b 33 31 6d     ..&lt;script&gt;.[31m" in page
    )
    assert "\x1b" not in page
    assert "bytes that a text field can't hold" in page


def test_hostile_text_is_escaped(acme: Cast) -> None:
    members = {f"k{n}{text}": text for n, text in enumerate(HOSTILE)}
    wrong = json.dumps(make_call()[END] | members | {"started_at": HOSTILE[0]})
    broken = wrong[:-1] + HOSTILE[0]
    for row in refuse(acme, wrong.encode(), broken.encode()):
        for path in ("/inbox/", f"/inbox/{row.id}"):
            page = shown(acme.editor, path)
            assert "<script>alert" not in page
            assert "<img src=x" not in page
            assert "\u202e" not in page.partition("<textarea")[0]


def test_conflict_is_compared_with_the_stored_event(acme: Cast) -> None:
    call, row = conflict(acme, duration_ms=5.5, is_error=True)
    page = shown(acme.editor, f"/inbox/{row.id}")
    day = datetime.fromisoformat(call[START]["started_at"]).date()
    assert f'href="/calls/{day}/{call[START]["invocation_id"]}"' in page
    assert f'href="/calls/{day}/{call[START]["invocation_id"]}/end"' in page
    table = text(page.split("differences")[1].partition("</table>")[0])
    assert "duration_ms 20.0 5.5" in table
    assert "is_error false true" in table
    assert "tool_name" not in table
    assert "rejected: the call already has this event" in text(page)


def test_truncated_event_cannot_be_retried(acme: Cast) -> None:
    end = make_call(output={"status": "ok", "data": "x" * 70_000})[END] | {"duration_ms": "no"}
    (row,) = refuse(acme, json.dumps(end).encode(), code="invalid_event")
    page = text(shown(acme.editor, f"/inbox/{row.id}"))
    assert re.search(r"Only the first 64\.0 KiB of 68\.\d KiB were kept", page)
    assert "Resend unchanged" not in page
    assert "Only the beginning" in act(acme.editor, row, "send")
    assert reread(row).resolution is None


def test_auth_is_removed_and_the_rest_can_be_retried(acme: Cast) -> None:
    call = make_call(is_open=True)
    (row,) = refuse(acme, json.dumps(call[START] | {"auth": "s3cret"}).encode())
    page = shown(acme.admin, f"/inbox/{row.id}")
    assert "s3cret" not in page
    assert "was removed before the event was kept" in text(page)
    assert "Event stored" in act(acme.editor, row, "send")


def test_event_is_not_found_for_another_tenant(acme: Cast, globex: Cast) -> None:
    (row,) = refuse(acme, b"{")
    client = signed_in(globex.admin)
    assert client.get(f"/inbox/{row.id}").status_code == 404
    for action, data in (("send", {}), ("discard", {"reason": "mine"})):
        assert client.post(f"/inbox/{row.id}/{action}", data).status_code == 404
    assert reread(row).resolution is None


# sending again


def test_retried_event_is_stored_after_a_fix(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    event = late_start()
    (row,) = refuse(acme, json.dumps(event).encode(), code="in_future")
    monkeypatch.setattr("audit.events.candidates.CLOCKS_DIFFER_US", 3 * 86_400_000_000)  # the fix
    assert "If resent now valid" in text(shown(acme.editor, f"/inbox/{row.id}"))
    page = act(acme.editor, row, "send")
    assert "Event stored." in page
    assert "belongs to this call of get_weather" in page
    assert '"accepted": 1' in page
    with tenant_scope(acme.tenant.id):
        call = Invocation.objects.for_tenant(acme.tenant.id).get()
    after = reread(row)
    assert call.start_batch_id == after.redrive_batch_id
    assert (after.resolution, after.resolved_by_name) == ("accepted", acme.editor.username)
    assert after.redrive_edited is False
    assert_consistent(acme.tenant)


def test_edited_multi_line_copy_replaces_the_invalid_event(acme: Cast) -> None:
    start, end = make_call(args={"text": "a\u2028b"})
    (row,) = refuse(acme, json.dumps(end | {"duration_ms": "twenty"}).encode())
    send_events(acme.tenant, [start])
    pretty = json.dumps(end | {"output": "a\u2028b"}, indent=2, ensure_ascii=False)
    assert "Event stored." in act(acme.editor, row, "send", line=pretty.replace("\n", "\r\n"))
    after = reread(row)
    assert (after.resolution, after.redrive_edited) == ("accepted", True)
    assert bytes(after.raw) == json.dumps(end | {"duration_ms": "twenty"}).encode()
    with tenant_scope(acme.tenant.id):
        call = Invocation.objects.for_tenant(acme.tenant.id).get()
    assert (call.state, call.duration_us) == ("ok", 20_000)
    assert "a\u2028b" not in shown(acme.editor, f"/inbox/{row.id}")
    assert_consistent(acme.tenant)


def test_retried_event_that_is_already_stored_is_a_duplicate(acme: Cast) -> None:
    call = make_call(is_open=True)
    (row,) = refuse(acme, json.dumps(call[START] | {"auth": "x"}).encode())
    send_events(acme.tenant, call)
    page = act(acme.editor, row, "send", line=json.dumps(call[START]))
    assert "already stored" in page
    assert "belongs to this call" in page
    assert reread(row).resolution == "duplicate"


def test_event_rejected_again_waits_as_a_new_inbox_event(acme: Cast) -> None:
    _, row = conflict(acme, duration_ms=5.0)
    page = act(acme.editor, row, "send")
    assert "Rejected again" in page
    after = reread(row)
    assert after.resolution == "refused"
    with tenant_scope(acme.tenant.id):
        waiting = RejectedEvent.objects.for_tenant(acme.tenant.id).get(resolution=None)
    assert waiting.batch_id == after.redrive_batch_id
    assert bytes(waiting.raw) == bytes(row.raw)
    assert f"/inbox/{waiting.id}" in shown(acme.editor, f"/inbox/{row.id}")
    assert_consistent(acme.tenant)


@pytest.mark.parametrize(
    ("edited", "word"),
    [
        ("", "the body has no lines"),
        ("x" * (1024 * 1024 + 1), "longer than 1048576 bytes"),
        (
            json.dumps(make_call(args=json.loads("[" * 80 + "]" * 80))[START]),
            "nested deeper than 64",
        ),
    ],
)
def test_invalid_edit_changes_nothing(acme: Cast, edited: str, word: str) -> None:
    (row,) = refuse(acme, b"{")
    assert word in act(acme.editor, row, "send", line=edited)
    assert reread(row).resolution is None
    with tenant_scope(acme.tenant.id):
        assert RejectedEvent.objects.for_tenant(acme.tenant.id).count() == 1


def test_database_failure_leaves_the_event_waiting(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failure is inside the page's transaction, and must not fail the page."""
    (row,) = refuse(acme, json.dumps(late_start()).encode())
    edited = json.dumps(make_call(is_open=True)[START])

    def fail(*args: object) -> str:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1/0")
        raise AssertionError("unreachable")

    monkeypatch.setattr(inbox, "record_in_scope", fail)
    assert "the database was busy" in act(acme.editor, row, "send", line=edited)
    assert reread(row).resolution is None
    monkeypatch.setattr(inbox, "record_in_scope", ingest.record_in_scope)
    assert "Event stored" in act(acme.editor, row, "send", line=edited)


def test_event_is_resolved_only_once(acme: Cast) -> None:
    (row,) = refuse(acme, b"{")
    act(acme.editor, row, "discard", reason="first")
    for action, data in (("send", {}), ("discard", {"reason": "second"})):
        assert "was already resent or discarded" in act(acme.admin, row, action, **data)
    assert reread(row).discard_reason == "first"
    with tenant_scope(acme.tenant.id):
        assert Batch.objects.for_tenant(acme.tenant.id).count() == 1


# discarding


def test_discarded_event_keeps_user_time_and_reason(acme: Cast) -> None:
    (row,) = refuse(acme, b"{")
    assert "Enter a reason" in act(acme.editor, row, "discard", reason=" ")
    assert "It stays in the list under Discarded" in act(
        acme.editor, row, "discard", reason="<b>typo</b>"
    )
    page = shown(acme.viewer, f"/inbox/{row.id}")
    assert f"Discarded by {acme.editor.username}" in text(page)
    assert "&lt;b&gt;typo&lt;/b&gt;" in page
    assert str(row.id) in shown(acme.viewer, "/inbox/?state=discarded")
    with tenant_scope(acme.tenant.id):
        action = Action.objects.get(tenant=acme.tenant, verb="inbox.discard")
    assert (action.subject, action.details["reason"]) == (str(row.id), "<b>typo</b>")


@pytest.mark.slow
def test_discard_all_affects_only_displayed_events_of_one_code(acme: Cast, globex: Cast) -> None:
    others = refuse(globex, b"{")
    conflict(acme, duration_ms=5.0)
    seen = refuse(acme, *(b"{ %d" % n for n in range(60)))
    page = shown(acme.editor, "/inbox/?code=not_json")
    assert "Discard all" not in shown(acme.editor, "/inbox/")
    assert "Discard all" not in shown(acme.auditor, "/inbox/?code=not_json")
    form = dict(re.findall(r'name="(code|until)" value="([^"]*)"', page))
    later = refuse(acme, b"{ later")
    client = signed_in(acme.editor)
    for data, expected in (
        (form, "Nothing discarded"),
        (form | {"reason": "x", "code": ""}, "Nothing discarded"),
        (form | {"reason": "a bad deploy"}, "Discarded 60 events"),
        (form | {"reason": "again"}, "Discarded 0 events"),
    ):
        answer = client.post("/inbox/discard", data, follow=True)
        assert expected in text(answer.content.decode())
    assert {reread(row).discard_reason for row in seen} == {"a bad deploy"}
    assert {reread(row).resolution for row in [*later, *others]} == {None}
    with tenant_scope(acme.tenant.id):
        waiting = RejectedEvent.objects.for_tenant(acme.tenant.id).filter(resolution=None)
        assert {row.code for row in waiting} == {"not_json", "conflict"}
        action = Action.objects.get(tenant=acme.tenant, verb="inbox.discard")
    assert action.details["count"] == 60


def test_application_role_cannot_delete_or_change_rejected_events(acme: Cast) -> None:
    (row,) = refuse(acme, b"{")
    for statement in (
        "DELETE FROM rejected_event WHERE tenant_id = %s",
        "UPDATE rejected_event SET raw = '' WHERE tenant_id = %s",
        "UPDATE rejected_event SET code = '' WHERE tenant_id = %s",
    ):
        with (
            pytest.raises(ProgrammingError, match="permission denied"),
            tenant_scope(acme.tenant.id),
            connection.cursor() as cursor,
        ):
            cursor.execute(statement, [acme.tenant.id])
    assert bytes(reread(row).raw) == b"{"


# exports


def export(user: User, path: str) -> bytes:
    answer = signed_in(user).get(path)
    assert answer.status_code == 200
    assert "attachment" in answer.headers["Content-Disposition"]
    return bytes(answer.getvalue())


def test_export_contains_every_event_and_the_count(acme: Cast) -> None:
    rows = refuse(acme, b"caf\xe9", *(b"{ %d" % n for n in range(230)))
    act(acme.editor, rows[1], "discard", reason="a test")
    *documents, last = map(
        json.loads, export(acme.auditor, "/inbox/export.ndjson?state=all").splitlines()
    )
    assert last == {"count": 231}
    assert [each["id"] for each in documents] == [str(row.id) for row in reversed(rows)]
    by_line = {each["line"]: each for each in documents}
    assert (by_line[1]["raw"], by_line[1]["raw_base64"]) == (None, "Y2Fm6Q==")
    assert (by_line[2]["raw"], by_line[2]["resolution"]) == ("{ 0", "discarded")
    waiting = export(acme.admin, "/inbox/export.ndjson").splitlines()
    assert json.loads(waiting[-1]) == {"count": 230}
    with tenant_scope(acme.tenant.id):
        assert Action.objects.filter(tenant=acme.tenant, verb="inbox.export").count() == 2


def test_no_csv_cell_is_a_formula(acme: Cast) -> None:
    refuse(acme, b"=1+1", b'@SUM(A1)"\xc3\xa9"', "\u3000＝1+1".encode())
    header, *rows, last = csv.reader(
        io.StringIO(export(acme.auditor, "/inbox/export.csv").decode())
    )
    column = header.index("raw")
    assert [row[column] for row in rows] == ["'\u3000＝1+1", '\'@SUM(A1)"é"', "'=1+1"]
    assert last == ["# count", "3"]


def test_each_different_export_of_rejected_events_is_logged(acme: Cast) -> None:
    """Rejected events are payloads. Another query exports others, so it is another entry."""
    refuse(acme, b"{")
    for _ in range(5):
        for query in ("", "?state=all"):
            export(acme.auditor, f"/inbox/export.csv{query}")
    signed_in(acme.auditor).head("/inbox/export.csv?state=discarded")
    with tenant_scope(acme.tenant.id):
        logged = Action.objects.filter(tenant=acme.tenant, verb="inbox.export").count()
    assert 2 <= logged <= 4  # a minute may have ended meanwhile


def test_export_requires_the_auditor_role(acme: Cast) -> None:
    refuse(acme, b"{")
    for user in (acme.viewer, acme.editor):
        assert signed_in(user).get("/inbox/export.ndjson").status_code == 403
    client: Client = signed_in(acme.auditor)
    assert client.get("/inbox/export.xls").status_code == 404
    assert client.get("/inbox/export.csv?state=odd").status_code == 404


def test_auditor_cannot_change_rejected_events(acme: Cast) -> None:
    (row,) = refuse(acme, b"{")
    client = signed_in(acme.auditor)
    for action in ("send", "discard"):
        assert client.post(f"/inbox/{row.id}/{action}", {"reason": "x"}).status_code == 403
        assert client.get(f"/inbox/{row.id}/{action}").status_code == 405
    assert reread(row).resolution is None


def test_every_rejection_code_is_known_to_the_page(acme: Cast) -> None:
    """The codes that ingest writes are the codes that the page knows."""
    event = make_call()[END]
    now = datetime.now(UTC)
    old = (now - timedelta(days=60)).isoformat()
    rows = refuse(
        acme,
        b"{",
        json.dumps(event | {"auth": "x"}).encode(),
        json.dumps(event | {"duration_ms": "no"}).encode(),
        json.dumps(late_start()).encode(),
        json.dumps(event | {"ended_at": old}).encode(),
        json.dumps(event | {"started_at": old, "ended_at": old}).encode(),
    )
    _, conflicting = conflict(acme, duration_ms=1.0)
    assert {row.code for row in [*rows, conflicting]} == set(inbox.CODES)


def test_gap_event_can_be_retried(acme: Cast) -> None:
    gap = {"type": "gap", "producer_id": "p", "from_seq": 1, "to_seq": 2, "reason": "r", "count": 2}
    (row,) = refuse(acme, json.dumps(gap | {"auth": "x"}).encode())
    assert "Event stored." in act(acme.editor, row, "send")
    assert reread(row).resolution == "accepted"


def test_line_is_judged_independently_of_its_neighbours() -> None:
    now, batch_id = datetime.now(UTC), uuid.uuid4()
    call = make_call()
    neighbours = [b"{", *lines([*call, make_call()[START]]).splitlines(), b"[]"]
    reading = read_lines([Line(*one) for one in enumerate(neighbours, 1)], batch_id, now)
    assert [one.line for one in reading.candidates] == [2, 3, 4]
    assert [one.line for one in reading.rejections] == [1, 5]
    for one in reading.candidates:
        alone = raw_view.judge(one.raw, batch_id, now).candidate
        assert alone is not None
        members = set(one.__struct_fields__) - {"line"}
        assert {name: getattr(alone, name) for name in members} == {
            name: getattr(one, name) for name in members
        }
    assert {str(one.invocation_id) for one in reading.candidates[:2]} == {
        call[START]["invocation_id"]
    }
    for refused in reading.rejections:
        verdict = raw_view.judge(refused.raw, batch_id, now)
        assert (verdict.candidate, verdict.code) == (None, refused.code)
        assert verdict.message == refused.message
