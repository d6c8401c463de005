"""Payload searches: matches, progress, cancelling, and resuming after a kill."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, connections
from hypothesis import given
from hypothesis import strategies as st
from procrastinate.contrib.django.models import ProcrastinateJob

from audit.models import PayloadHit, PayloadSearch
from audit.queries.payload_match import excerpt
from audit.tasks.requested import search_payloads
from audit.tasks.tenants import keep_to_retention
from audit.work import payload_search
from audit.work.payload_search import run_slice
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.pages import HOSTILE, signed_in, text

NOW = datetime.now(UTC)


@pytest.mark.parametrize(
    ("raw", "needle", "match"),
    [
        (b'{"city": "London"}', "London", "London"),
        (b'{"city": "London"}', "lonDON", "London"),
        (b'{"city": "London"}', '"city": "Lon', '"city": "Lon'),
        (b'{"n": 72.50}', "72.50", "72.50"),
        (b'{"a": "caf\\u00e9"}', "café", "café"),
        (b'{"a": "caf\\u00E9"}', "CAFÉ", "café"),
        ('{"a": "café"}'.encode(), "café", "café"),
        (b'{"a": "say \\"hi\\""}', 'say "hi"', 'say \\"hi\\"'),
        (b'{"a": "C:\\\\temp"}', "C:\\temp", "C:\\\\temp"),
        (b'{"a": "\\ud83d\\ude00"}', "\U0001f600", "\U0001f600"),
        (b"\xff broken \\ but here", "but here", "but here"),
        (b'{"a": "STRASSE"}', "straße", "STRASSE"),
        ('{"a": "Straße 1"}'.encode(), "STRASSE 1", "Straße 1"),
        ('{"a": "İstanbul", "b": "London"}'.encode(), "LONDON", "London"),
        ('{"a": "ßßß", "b": "ſtreet"}'.encode(), "STREET", "ſtreet"),
        ('{"a": "Maß"}'.encode(), "MAS", "Maß"),
        ('{"a": "ﬃ, ß, x"}'.encode(), "SS, X", "ß, x"),
    ],
)
def test_excerpt_quotes_the_match(raw: bytes, needle: str, match: str) -> None:
    one = excerpt(raw, needle)
    assert one is not None
    assert one.match == match


@pytest.mark.parametrize(
    ("raw", "needle"),
    [(b'{"a": 1}', "b"), (b"\\ not json", "nope"), (b"[" * 90_000 + b"\\", "x" * 3), (b"", "a")],
)
def test_excerpt_is_none_without_a_match(raw: bytes, needle: str) -> None:
    assert excerpt(raw, needle) is None


@given(st.text(), st.text(min_size=1), st.text(), st.booleans())
def test_text_is_matched_in_any_json_spelling(
    before: str, needle: str, after: str, ensure_ascii: bool
) -> None:
    raw = json.dumps({"args": before + needle + after}, ensure_ascii=ensure_ascii)
    assert excerpt(raw.encode(errors="surrogatepass"), needle) is not None


def start(cast: Cast, needle: str, query: str = "") -> UUID:
    answer = signed_in(cast.editor).post("/calls/search", {"text": needle, "q": query})
    assert answer.status_code == 302
    match = re.fullmatch(r"/calls/search/([0-9a-f-]{36})", answer.headers["Location"])
    assert match is not None
    return UUID(match[1])


def jobs(pk: UUID) -> list[str]:
    rows = ProcrastinateJob.objects.filter(args__search_id=str(pk)).order_by("id")
    return [job.status for job in rows]


def state(cast: Cast, pk: UUID) -> PayloadSearch:
    with tenant_scope(cast.tenant.id):
        return PayloadSearch.objects.for_tenant(cast.tenant.id).get(id=pk)


def hits(cast: Cast, pk: UUID) -> list[tuple[str, UUID]]:
    with tenant_scope(cast.tenant.id):
        rows = PayloadHit.objects.for_tenant(cast.tenant.id).filter(search_id=pk)
        return sorted(rows.values_list("kind", "invocation_id"))


def send_many(cast: Cast, count: int, **members: Any) -> None:
    send_events(
        cast.tenant,
        (
            event
            for n in range(count)
            for event in make_call(
                started_at=NOW - timedelta(seconds=n + 60), args={"city": f"Bath {n}"}, **members
            )
        ),
    )


def test_search_matches_arguments_outputs_and_errors(acme: Cast) -> None:
    error = {"type": "FATAL", "message": "No needle here"}
    broken = {"status": "error", "error": error, "meta": {"took_ms": 1}}
    events = [
        make_call(args={"q": "the NEEDLE"}),
        make_call(output={"status": "ok", "data": ["needle"], "meta": {}}),
        make_call(output=broken),
        make_call(args={"q": "straw"}),
        make_call(args={"q": "needle"}, started_at=NOW - timedelta(hours=30)),
    ]
    for call in events:
        send_events(acme.tenant, call)
    pk = start(acme, "needle")
    assert jobs(pk) == ["todo"]
    assert not run_slice(acme.tenant.id, pk)
    matches = hits(acme, pk)
    assert [kind for kind, _ in matches] == ["end", "end", "start"]
    ids = {UUID(str(call[0]["invocation_id"])) for call in events[:3]}
    assert {invocation_id for _, invocation_id in matches} == ids
    search = state(acme, pk)
    assert (search.state, search.searched_count, search.found_count) == ("done", 4, 3)
    page = signed_in(acme.editor).get(f"/calls/search/{pk}").content.decode()
    assert "the <mark>NEEDLE</mark>" in page.replace("&quot;", '"')
    assert page.count('class="hit mono"') == 3
    assert ">Refresh</a>" not in page


def test_query_and_range_limit_the_search(acme: Cast) -> None:
    send_events(acme.tenant, make_call(tool_name="a", args={"q": "needle"}))
    send_events(acme.tenant, make_call(tool_name="b", args={"q": "needle"}))
    old = make_call(tool_name="a", args={"q": "needle"}, started_at=NOW - timedelta(hours=30))
    send_events(acme.tenant, old)
    near, far = start(acme, "needle", "tool:a"), start(acme, "needle", "tool:a since:2d")
    for pk, count in ((near, 1), (far, 2)):
        run_slice(acme.tenant.id, pk)
        assert state(acme, pk).found_count == count
    longest = start(acme, "needle", "since:2020-01-01")
    assert NOW - state(acme, longest).since < timedelta(days=36)


def test_unreadable_stored_query_fails_the_search(acme: Cast) -> None:
    send_events(acme.tenant, make_call(args={"q": "needle"}))
    pk = start(acme, "needle", "tool:a")
    with tenant_scope(acme.tenant.id):
        stored = PayloadSearch.objects.for_tenant(acme.tenant.id).filter(id=pk)
        assert stored.update(query="tool:a nope:1") == 1
    run_slice(acme.tenant.id, pk)
    search = state(acme, pk)
    assert (search.state, search.searched_count, search.found_count) == ("failed", 0, 0)


def test_search_resumes_between_two_chunks(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload_search, "CHUNK", 7)
    send_many(acme, 30)
    pk = start(acme, "bath")
    counts = []
    while run_slice(acme.tenant.id, pk, seconds=0):
        counts.append(state(acme, pk).searched_count)
    assert counts == [7, 14, 21, 28]
    assert state(acme, pk).searched_count == 30
    assert len(hits(acme, pk)) == 30


def test_kill_within_a_chunk_changes_nothing(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload_search, "CHUNK", 7)
    send_many(acme, 10)
    pk = start(acme, "bath")
    assert run_slice(acme.tenant.id, pk, seconds=0)
    before = (state(acme, pk).searched_count, hits(acme, pk))

    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(PayloadSearch, "save", die)
        with pytest.raises(KeyboardInterrupt):
            run_slice(acme.tenant.id, pk)
    assert (state(acme, pk).searched_count, hits(acme, pk)) == before
    assert not run_slice(acme.tenant.id, pk)
    assert len(hits(acme, pk)) == 10


def test_task_defers_itself_until_the_search_is_done(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payload_search, "CHUNK", 7)
    monkeypatch.setattr(payload_search.run_slice, "__kwdefaults__", {"seconds": 0.0})
    send_many(acme, 10)
    pk = start(acme, "bath")
    ids = {"tenant_id": str(acme.tenant.id), "search_id": str(pk)}
    search_payloads(**ids)
    assert (state(acme, pk).state, len(jobs(pk))) == ("running", 2)
    search_payloads(**ids)
    assert (state(acme, pk).state, len(jobs(pk))) == ("done", 2)


def test_stalled_task_of_a_dead_worker_is_retried(acme: Cast) -> None:
    pk = start(acme, "bath")
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE procrastinate_jobs SET status = 'doing' WHERE args->>'search_id' = %s",
            [str(pk)],
        )
    connections.close_all()
    import asyncio

    from procrastinate.contrib.django import app

    from audit.tasks.installation import retry_stalled_jobs

    async def run() -> None:
        # The connector of `procrastinate worker`; the base class does not declare it.
        connector = app.connector.get_worker_connector()  # type: ignore[attr-defined]  # what its types leave out
        with app.replace_connector(connector) as worker:
            async with worker.open_async():
                await retry_stalled_jobs(timestamp=0)

    asyncio.run(run())
    assert jobs(pk) == ["todo"]


def test_search_can_be_cancelled(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload_search, "CHUNK", 7)
    send_many(acme, 20)
    pk = start(acme, "bath")
    run_slice(acme.tenant.id, pk, seconds=0)
    page = signed_in(acme.editor).get(f"/calls/search/{pk}").content.decode()
    assert 'hx-trigger="click, every 1s"' in page
    assert "Cancel" in text(page)
    assert re.search(r'<progress max="100" value="\d+"', page)
    signed_in(acme.editor).post(f"/calls/search/{pk}/cancel")
    assert not run_slice(acme.tenant.id, pk)
    assert (state(acme, pk).state, len(hits(acme, pk))) == ("cancelled", 7)
    page = text(signed_in(acme.editor).get(f"/calls/search/{pk}").content.decode())
    assert "Cancelled" in page
    signed_in(acme.editor).post(f"/calls/search/{pk}/cancel")  # a second time changes nothing
    assert state(acme, pk).state == "cancelled"


def test_search_with_too_many_matches_ends(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload_search, "CHUNK", 7)
    monkeypatch.setattr(payload_search, "MAX_HITS", 10)
    send_many(acme, 20)
    pk = start(acme, "bath")
    assert not run_slice(acme.tenant.id, pk)
    assert (state(acme, pk).state, len(hits(acme, pk))) == ("full", 10)
    assert "narrow the query" in text(
        signed_in(acme.editor).get(f"/calls/search/{pk}").content.decode()
    )


def test_matches_are_paged(acme: Cast) -> None:
    send_many(acme, 60, output={"status": "ok", "data": "bath", "meta": {}})
    pk = start(acme, "bath")
    run_slice(acme.tenant.id, pk)
    client = signed_in(acme.editor)
    seen: list[str] = []
    address = f"/calls/search/{pk}"
    while address:
        page = client.get(address).content.decode()
        seen += re.findall(r"<mark>Bath</mark>( \d+)", page)
        link = re.search(r'rel="next" href="([^"]*)"', page)
        address = f"/calls/search/{pk}{link[1].replace('&amp;', '&')}" if link else ""
    assert seen == [f" {n}" for n in range(60)]


def test_erased_events_are_counted_and_not_shown(acme: Cast) -> None:
    send_many(acme, 3)
    pk = start(acme, "bath")
    run_slice(acme.tenant.id, pk)
    with connections["owner"].cursor() as cursor:
        cursor.execute("UPDATE batch SET payload = NULL WHERE tenant_id = %s", [acme.tenant.id])
    page = signed_in(acme.editor).get(f"/calls/search/{pk}").content.decode()
    assert "Bath" not in page
    assert "no longer in the log" in page
    again = start(acme, "bath")
    run_slice(acme.tenant.id, again)
    assert (state(acme, again).found_count, state(acme, again).erased_count) == (0, 6)


@pytest.mark.slow
def test_search_is_deleted_after_a_day(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("audit.tasks.tenants._tenant_ids", lambda: [acme.tenant.id])
    send_many(acme, 1)
    old, waiting, kept = (start(acme, "bath") for _ in range(3))
    for pk in (old, kept):
        run_slice(acme.tenant.id, pk)
    with tenant_scope(acme.tenant.id):
        searches = PayloadSearch.objects.for_tenant(acme.tenant.id)
        searches.filter(id__in=[old, waiting]).update(created_at=NOW - timedelta(hours=25))
    keep_to_retention(0)
    assert not run_slice(acme.tenant.id, waiting)
    with tenant_scope(acme.tenant.id):
        assert list(searches.values_list("id", flat=True)) == [kept]
    assert (hits(acme, old), len(hits(acme, kept))) == ([], 1)
    assert signed_in(acme.editor).get(f"/calls/search/{old}").status_code == 404


def test_search_is_private_to_its_user(acme: Cast, globex: Cast) -> None:
    pk = start(acme, "bath")
    for other in (acme.admin, globex.admin):
        assert signed_in(other).get(f"/calls/search/{pk}").status_code == 404
        assert signed_in(other).post(f"/calls/search/{pk}/cancel").status_code == 404
    assert state(acme, pk).state == "waiting"
    assert not run_slice(globex.tenant.id, pk), "another tenant's search does not exist"
    assert state(acme, pk).state == "waiting"


@pytest.mark.parametrize(
    ("needle", "query"),
    [("", ""), ("a", ""), ("x" * 201, ""), ("a\x00b", ""), ("fine", "nonsense:1"), ("fine", "NOT")],
)
def test_invalid_search_is_rejected(acme: Cast, needle: str, query: str) -> None:
    data = {"text": needle, "q": query}
    answer = signed_in(acme.editor).post("/calls/search", data, follow=True)
    assert "Nothing was searched" in text(answer.content.decode())
    with tenant_scope(acme.tenant.id):
        assert not PayloadSearch.objects.for_tenant(acme.tenant.id).exists()


@pytest.mark.parametrize("hostile", [one for one in HOSTILE if "\x00" not in one])
def test_hostile_payloads_are_escaped(acme: Cast, hostile: str) -> None:
    send_events(acme.tenant, make_call(args={"q": f"needle {hostile}"}))
    for needle in ("needle", hostile):
        pk = start(acme, needle)
        run_slice(acme.tenant.id, pk)
        page = signed_in(acme.editor).get(f"/calls/search/{pk}").content.decode()
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "\u202e" not in page
        assert state(acme, pk).found_count == 1
