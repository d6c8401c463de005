"""Principals become pseudonyms before anything is stored, in events and spans alike."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse

from audit.events.redaction import forget_rules
from audit.intake import principal_keys
from audit.intake.principals import PSEUDONYM, Pseudonyms
from audit.models import Invocation, RejectedEvent
from tenants.models import Action, TenantSetting
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, make_decision, make_ingest_key, send_events
from tests.support.otlp_requests import JSON, post, request, span
from tests.support.stored_events import stored_lines

ADA = "ada@example.com"


@pytest.fixture(autouse=True)
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of keys of its own."""
    monkeypatch.setattr(settings, "PRINCIPAL_KEYS", tmp_path / "principal-keys.json")
    return tmp_path / "principal-keys.json"


def pseudonym(cast: Cast) -> str:
    return Pseudonyms(cast.tenant.id).of(ADA)


def stored(cast: Cast, columns: str, table: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {columns} FROM {table} WHERE tenant_id = %s",  # ours
            [cast.tenant.id],
        )
        fetched: list[tuple[Any, ...]] = cursor.fetchall()
    return fetched


def test_nothing_that_events_leave_behind_names_a_principal(acme: Cast) -> None:
    context = {"agent": "concierge", "principal": ADA}
    events = [
        *make_call(context=context),
        *make_call(context={"user": ADA, "agent": "older"}, tool_name="older"),
        make_decision("awaiting", requested_by=ADA, tool_name="pay"),
        make_decision("approved", by={"kind": "person", "id": ADA, "name": ADA}, context=context),
        make_decision("denied", by={"kind": "policy", "id": "four-eyes"}),
        make_call(context=context)[0] | {"tool_name": 7},  # rejected: it waits in the inbox
    ]
    answer = send_events(acme.tenant, events)
    assert len(answer["rejected"]) == 1
    known = pseudonym(acme)
    with tenant_scope(acme.tenant.id):
        assert {call.principal for call in Invocation.objects.all()} == {known}
        decided = set(stored(acme, "requested_by, by_id, by_name", "decision"))
        (waiting,) = RejectedEvent.objects.all()
    assert decided == {(known, None, None), (None, known, known), (None, "four-eyes", None)}
    text = b"".join(stored_lines(acme)) + bytes(waiting.raw)
    assert ADA.encode() not in text
    assert text.count(known.encode()) >= 7


def test_spans_are_stored_without_persons(acme: Cast) -> None:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "user.id": ADA,
        "user.email": ADA,
        "metadata": json.dumps({"user_id": ADA, "session_id": "s-1"}),
    }
    key = make_ingest_key(acme.tenant)
    post(key, request(span("execute_tool search", attributes=attributes)), JSON)
    with tenant_scope(acme.tenant.id):
        (call,) = Invocation.objects.all()
        contexts = stored(acme, "context", "otlp_span")
    assert (call.principal, call.run_id) == (pseudonym(acme), "s-1")
    assert ADA not in str(contexts)
    assert ADA.encode() not in b"".join(stored_lines(acme))


@pytest.mark.parametrize(
    "line",
    [
        b'{"context": {"principal": "ada@example.com"}}',
        b'{"args": {"context": {"principal": "x"}}, "context": {"principal": "ada@example.com"}}',
        b'{"args": {"user": "ada@example.com"}, "x": [1], "context": {"user": "ada@example.com"}}',
        b'{"context": {"principal": "a"}, "context": {"user": "ada@example.com"}}',
        b'{"c\\u006fntext": {"us\\u0065r": "ada@example.com"}}',
        b'{"type": "toolCallDecision", "requestedBy": "ada@example.com"}',
        b'{"context": {"principal": {"mail": "ada@example.com"}}}',
    ],
)
def test_members_are_found_exactly(acme: Cast, line: bytes) -> None:
    """Also of hostile lines; arguments are payloads and stay as they are."""
    hidden = Pseudonyms(acme.tenant.id).hide(line)
    before, after = json.loads(line), json.loads(hidden)
    for name in ("args", "x"):
        assert after.get(name) == before.get(name)
        before.pop(name, None)
        after.pop(name, None)
    assert ADA not in json.dumps(after)
    assert Pseudonyms(acme.tenant.id).hide(hidden) == hidden, "a pseudonym stays"


@pytest.mark.parametrize(
    ("line", "is_kept"),
    [
        (b'{"args": {"principal": "ada"}}', True),
        (b'{"context": "no object", "principal": 1}', True),
        (b'{"context": {"agent": "a"}, "args": "\\u00e9"}', True),
        (b'{"context": {"principal": "ada"', False),
        (b'no JSON, "context" at all', False),
        (b"no JSON at all", True),
    ],
)
def test_other_lines_stay_as_they_are_and_unreadable_ones_are_not_kept(
    acme: Cast, line: bytes, is_kept: bool
) -> None:
    hidden = Pseudonyms(acme.tenant.id).hide(line)
    assert (hidden is line) if is_kept else hidden == b"[redacted]"


def test_clear_text_is_a_choice_of_the_tenant(acme: Cast, globex: Cast) -> None:
    with tenant_scope(acme.tenant.id):
        TenantSetting.objects.create(tenant=acme.tenant, clear_principals=True)
    forget_rules(acme.tenant.id)
    for cast, expected in ((acme, ADA), (globex, pseudonym(globex))):
        send_events(cast.tenant, make_call(context={"principal": ADA}))
        with tenant_scope(cast.tenant.id):
            (call,) = Invocation.objects.all()
        assert call.principal == expected
    assert pseudonym(acme) != pseudonym(globex)


def test_admin_looks_somebody_up_after_a_rotation(acme: Cast, keys: Path) -> None:
    send_events(acme.tenant, make_call(context={"principal": ADA}, tool_name="before"))
    call_command("principals", "rotate-key")
    send_events(acme.tenant, make_call(context={"principal": ADA}, tool_name="after"))
    assert keys.stat().st_mode & 0o777 == 0o600
    client = Client()
    client.force_login(acme.admin)
    page = client.post(reverse("redaction_settings"), {"person": ADA, "look_up": "1"})
    query = page.context["query"]
    assert len(PSEUDONYM.findall(query)) == 2
    found = client.get(reverse("call_list"), {"q": query}).content.decode()
    assert "before" in found
    assert "after" in found
    with tenant_scope(acme.tenant.id):
        action = Action.objects.get(verb="principal.look_up")
    assert ADA not in json.dumps([action.subject, action.details])
    assert action.details["pseudonyms"] == Pseudonyms(acme.tenant.id).all_of(ADA)


def test_lost_keys_are_no_longer_named_and_unreadable_ones_store_nothing(
    acme: Cast, keys: Path
) -> None:
    first = pseudonym(acme)
    call_command("principals", "rotate-key")
    rotated = pseudonym(acme)
    keys.unlink()
    assert pseudonym(acme) == first, "the key of the secret key is back"
    call_command("principals", "rotate-key")
    assert first[:8] != pseudonym(acme)[:8] != rotated[:8], "each key has an id of its own"
    keys.chmod(0o644)
    body: dict[str, Any] = make_call(context={"principal": ADA})[0]
    answer = Client().post(
        "/api/v1/events",
        data=json.dumps(body).encode(),
        content_type="application/x-ndjson",
        headers={"Authorization": f"Bearer {make_ingest_key(acme.tenant)}"},
    )
    assert answer.status_code == 503
    with tenant_scope(acme.tenant.id):
        assert not Invocation.objects.exists()


def test_keys_are_read_once_and_again_after_a_rotation(keys: Path) -> None:
    (first,) = principal_keys.stored_keys()
    assert principal_keys.stored_keys()[0] is principal_keys.stored_keys()[0]
    assert next(key.id for key in principal_keys.rotate()) == first.id
    assert len(principal_keys.stored_keys()) == 2
