"""Comparisons of arguments: a planted value is found first, no payload is stored, progress."""

import json
import random
import re
from datetime import UTC, datetime, timedelta
from itertools import batched
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test import Client

from audit.apart.arguments import Read, find, seen_in
from audit.models import ArgumentComparison
from audit.tasks.requested import compare_arguments
from audit.tasks.tenants import keep_to_retention
from audit.work import argument_comparison as job
from tenants.keys import create_key
from tenants.models import Action, Scope
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, make_cast, send_events
from tests.support.ledger_log import as_owner
from tests.support.pages import HOSTILE, signed_in, text

SECRET = "Zurich-7c2d"
CITIES = ("Rome", "Paris", "Oslo", SECRET)


def arguments(rng: random.Random) -> dict[str, Any]:
    """Random arguments: choices, a text of its own in each call, nested and optional members."""
    chosen: dict[str, Any] = {
        "city": rng.choice(CITIES),
        "days": rng.choice([1, 2, 3]),
        "query": f"{rng.getrandbits(60):x}",
        "filters": {"kind": rng.choice(["hotel", "flat"]), "pets": rng.random() < 0.5},
        "note": rng.choice(HOSTILE),
    }
    if rng.random() < 0.3:
        chosen["budget"] = rng.randrange(1000)
    return chosen


def events(rng: random.Random, calls: int, has_cause: Any) -> list[dict[str, Any]]:
    """Calls of a tool over ten hours; those with the cause fail in six of ten cases."""
    made: list[dict[str, Any]] = []
    for _ in range(calls):
        args = arguments(rng)
        is_bad = rng.random() < (0.6 if has_cause(args) else 0.06)
        error = {"status": "error", "error": {"type": "UPSTREAM", "message": "no"}}
        made += make_call(
            invocation_id=str(UUID(int=rng.getrandbits(128), version=4)),
            started_at=datetime.now(UTC) - timedelta(minutes=rng.randrange(5, 600)),
            tool_name="search",
            trace_id=f"trace-{rng.randrange(300)}",
            args=args,
            is_error=is_bad,
            output=error if is_bad else {"status": "ok", "data": {}},
        )
    return made


@pytest.fixture(scope="module")
def cast() -> Cast:
    cast = make_cast("arguments")
    for part in batched(events(random.Random(3), 600, lambda args: args["city"] == SECRET), 200):
        send_events(cast.tenant, part)
    return cast


def start(cast: Cast, query: str = "state:failed tool:search") -> UUID:
    answer = signed_in(cast.editor).post("/apart/arguments", {"q": query, "range": "24h"})
    match = re.fullmatch(r"/apart/arguments/([0-9a-f-]{36})", answer["Location"])
    assert match is not None, answer["Location"]
    return UUID(match[1])


def finish(cast: Cast, pk: UUID) -> None:
    while job.run_slice(cast.tenant.id, pk):
        pass


def stored(cast: Cast, pk: UUID) -> ArgumentComparison:
    with tenant_scope(cast.tenant.id):
        return ArgumentComparison.objects.for_tenant(cast.tenant.id).get(id=pk)


def page(cast: Cast, pk: UUID) -> str:
    return signed_in(cast.editor).get(f"/apart/arguments/{pk}").content.decode()


def first_row(shown: str) -> str:
    return text(re.findall(r'<td class="lead value">(.*?)</td>', shown, re.S)[0])


CAUSES: dict[str, Any] = {
    "city": lambda args: args["city"] == SECRET,
    "filters.kind": lambda args: args["filters"]["kind"] == "flat",
    "budget": lambda args: "budget" in args,
    "city and days": lambda args: args["city"] == "Oslo" and args["days"] == 2,
}


@pytest.mark.slow
@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("seed", range(13))
def test_a_planted_argument_is_found_first(seed: int, cause: str) -> None:
    rng = random.Random(f"{seed} {cause}")
    calls = []
    for number in range(1_200):
        args = arguments(rng)
        is_bad = rng.random() < (0.5 if CAUSES[cause](args) else 0.05)
        calls.append(Read(is_bad, number, "2026-11-26", "id", seen_in(args, "salt")))
    found, tested = find(calls)
    assert found, (seed, tested)
    assert {".".join(part.path) for part in found[0].parts} == set(cause.split(" and ")), seed


@pytest.mark.slow
def test_nothing_is_found_without_a_cause() -> None:
    named = {}
    for seed in range(40):
        rng = random.Random(seed)
        calls = [
            Read(rng.random() < 0.1, number, "", "", seen_in(arguments(rng), "salt"))
            for number in range(800)
        ]
        if found := find(calls)[0]:
            named[seed] = found
    assert named == {}


@pytest.mark.slow
def test_the_page_names_the_planted_value_first(cast: Cast) -> None:
    pk = start(cast)
    assert "Waiting" in text(page(cast, pk))
    finish(cast, pk)
    shown = page(cast, pk)
    assert first_row(shown) == f'city "{SECRET}"'
    with tenant_scope(cast.tenant.id):
        verbs = list(Action.objects.filter(subject=str(pk)).values_list("verb", flat=True))
    assert sorted(verbs) == ["payload.compare", "payload.compared"]
    link = re.findall(r'href="(/calls/\?q=[^"]*)"\s+title="Selected calls that have it"', shown)[0]
    listed = signed_in(cast.editor).get(link.replace("&amp;", "&")).content.decode()
    assert "Invalid query" not in listed
    assert "search" in listed
    assert "<script>alert(1)</script>" not in shown


def test_no_argument_is_stored(cast: Cast) -> None:
    pk = start(cast)
    assert job.run_slice(cast.tenant.id, pk, seconds=0)
    assert job.run_slice(cast.tenant.id, pk, seconds=0)
    assert stored(cast, pk).observed
    for _ in range(2):
        with tenant_scope(cast.tenant.id), connection.cursor() as cursor:
            cursor.execute(
                "SELECT to_jsonb(c)::text FROM argument_comparison c WHERE tenant_id = %s",
                [cast.tenant.id],
            )
            assert SECRET not in str(cursor.fetchall())
        finish(cast, pk)
    assert stored(cast, pk).observed == ""


def test_it_continues_where_it_stopped_and_reports_progress(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "CHUNK", 50)
    pk = start(cast)
    counts = []
    while job.run_slice(cast.tenant.id, pk, seconds=0):
        counts.append(stored(cast, pk).read_count)
    assert counts == sorted(counts)
    assert len(set(counts)) >= 5
    one = stored(cast, pk)
    assert one.state == "done"
    assert one.read_count == one.call_count > 500
    assert json.loads(one.differences)


def test_it_can_be_cancelled(cast: Cast) -> None:
    pk = start(cast)
    job.run_slice(cast.tenant.id, pk, seconds=0)
    signed_in(cast.editor).post(f"/apart/arguments/{pk}/cancel")
    assert not job.run_slice(cast.tenant.id, pk)
    assert stored(cast, pk).observed == ""
    assert "Cancelled" in text(page(cast, pk))


@pytest.mark.slow
def test_the_task_runs_it_and_the_hourly_one_forgets_it(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("audit.tasks.tenants._tenant_ids", lambda: [cast.tenant.id])
    pk = start(cast)
    compare_arguments(tenant_id=str(cast.tenant.id), comparison_id=str(pk))
    assert stored(cast, pk).state == "done"
    with tenant_scope(cast.tenant.id):
        ArgumentComparison.objects.for_tenant(cast.tenant.id).filter(id=pk).update(
            created_at=datetime.now(UTC) - timedelta(hours=25)
        )
    keep_to_retention(timestamp=0)
    assert signed_in(cast.editor).get(f"/apart/arguments/{pk}").status_code == 404


def test_values_of_erased_calls_are_not_shown(cast: Cast) -> None:
    other = make_cast("erased")
    for part in batched(events(random.Random(3), 300, lambda args: args["city"] == SECRET), 200):
        send_events(other.tenant, part)
    pk = start(other)
    finish(other, pk)
    assert SECRET in page(other, pk)
    as_owner("UPDATE batch SET payload = NULL WHERE tenant_id = %s", [other.tenant.id])
    shown = page(other, pk)
    assert SECRET not in shown
    assert "a value that was erased" in text(shown)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("state:nonsense tool:search", "Nothing was compared"),
        ("state:failed", "Add tool:"),
        ("tool:search", "Add tool:"),
        ("args.city:Rome tool:search", "payloads are not in the index"),
        ("state:refused tool:search", "did not run"),
    ],
)
def test_what_cannot_be_compared_is_explained(cast: Cast, query: str, reason: str) -> None:
    data = {"q": query, "range": "24h"}
    answer = signed_in(cast.editor).post("/apart/arguments", data, follow=True)
    assert reason in text(answer.content.decode())


def test_viewers_and_auditors_neither_start_nor_see_it(cast: Cast) -> None:
    pk = start(cast)
    finish(cast, pk)
    for user in (cast.viewer, cast.auditor):
        client = signed_in(user)
        shown = client.get("/apart/", {"q": "state:failed tool:search", "range": "24h"})
        assert "Compare arguments" not in shown.content.decode()
        assert client.get(f"/apart/arguments/{pk}").status_code == 403
        assert client.post("/apart/arguments", {"q": "state:failed tool:search"}).status_code == 403
    shown = signed_in(cast.editor).get("/apart/", {"q": "state:failed tool:search"})
    assert "Compare arguments" in shown.content.decode()


def test_the_api_starts_reads_and_cancels(cast: Cast) -> None:
    key = create_key(cast.tenant, "reader", [Scope.READ, Scope.PAYLOADS])[1]
    client = Client(headers={"Authorization": f"Bearer {key}"})
    body = {"q": "state:failed tool:search"}
    started = client.post("/api/v1/apart/arguments", body, "application/json")
    assert started.status_code == 201, started.content
    pk = started.json()["id"]
    finish(cast, UUID(pk))
    document = client.get(f"/api/v1/apart/arguments/{pk}").json()
    assert document["state"] == "done"
    first = document["set_apart"][0]
    assert first["parts"] == [{"path": ["city"], "type": None, "value": SECRET}]
    assert first["lift"] > 2
    assert client.get(f"/api/v1/calls/{first['example']}").json()["state"] == "failed"
    assert client.post(f"/api/v1/apart/arguments/{pk}/cancel").status_code == 200
    poor = create_key(cast.tenant, "viewer", [Scope.READ])[1]
    refused = Client(headers={"Authorization": f"Bearer {poor}"})
    assert refused.get(f"/api/v1/apart/arguments/{pk}").status_code == 403
    for query in ("state:failed", "state:nonsense tool:a"):
        answer = client.post("/api/v1/apart/arguments", {"q": query}, "application/json")
        assert answer.json()["code"] == "query"
