"""The audit log: its page, its files, and its API."""

import csv
import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from audit.ledger.actions import enter_actions
from audit.queries.actions import ActionFilter, action_page
from tenants.actions import record_action
from tenants.keys import create_key
from tenants.models import Action, Scope
from tenants.scope import tenant_scope
from tests.support.factories import Cast
from tests.support.ledger_log import as_owner
from tests.support.pages import signed_in, text

HOSTILE = "<b>x</b>\u202e"


def act(cast: Cast, *actions: tuple[str, str], actor: str = "Ada", **details: Any) -> None:
    with tenant_scope(cast.tenant.id):
        for verb, subject in actions:
            record_action(cast.tenant, actor, verb, subject, **details)


def page(cast: Cast, query: str = "") -> str:
    answer = signed_in(cast.auditor).get(f"/actions/{query}")
    assert answer.status_code == 200
    return str(answer.content.decode()).partition("<tbody>")[2]


def api(cast: Cast, *scopes: Scope, **query: str | int) -> dict[str, Any]:
    text = create_key(cast.tenant, "program", list(scopes))[1]
    answer = Client(headers={"Authorization": f"Bearer {text}"}).get("/api/v1/actions", query)
    assert answer.status_code == 200
    document: dict[str, Any] = answer.json()
    return document


def test_page_shows_user_verb_subject_details_and_ledger_entry(acme: Cast) -> None:
    act(acme, ("key.create", "wallboard"), scopes=["read"])
    assert ">pending<" in page(acme)
    enter_actions(acme.tenant.id, datetime.now(UTC))
    shown = page(acme)
    for said in ("Ada", "key.create", "wallboard", "[&quot;read&quot;]", "/ledger/entries/0"):
        assert said in shown


def test_custom_range_is_kept_by_filters_files_and_removed(acme: Cast) -> None:
    act(acme, ("key.create", "old"), ("key.create", "new"))
    scope = [acme.tenant.id]
    as_owner(
        "UPDATE action SET at = '2026-01-02 12:00Z' WHERE tenant_id = %s AND subject = 'old'", scope
    )
    query = "?actor=Ada&from=2026-01-02T00:00&to=2026-01-03T00:00"
    client = signed_in(acme.auditor)
    shown = client.get(f"/actions/{query}").content.decode()
    assert "2026-01-02 00:00 to 2026-01-03 00:00" in text(shown)
    assert ">old<" in shown
    assert ">new<" not in shown
    assert '<input type="hidden" name="actor" value="Ada">' in shown
    assert 'aria-label="Remove the range"' in shown
    lines = client.get(f"/actions/export.ndjson{query}").getvalue().splitlines()
    assert [json.loads(line).get("subject") for line in lines[:-1]] == ["old"]
    assert "None between 2026-02-01" in page_of(client, "?from=2026-02-01&to=2026-02-02")
    refused = page_of(client, "?from=2026-01-03&to=2026-01-02")
    assert "Invalid filter" in refused
    assert "key.create old" not in refused
    assert client.get("/actions/export.csv?from=x").status_code == 404


def page_of(client: Client, query: str) -> str:
    return text(client.get(f"/actions/{query}").content.decode())


def test_filter_matches_a_lone_surrogate_as_stored(acme: Cast) -> None:
    act(acme, ("a.b", "one?"), ("a.b", "two\ud800"))
    with tenant_scope(acme.tenant.id):
        matches = action_page(ActionFilter(subject="\ud800"), size=9).actions
    assert [each.subject for each in matches] == ["two\ufffd"]


def test_audit_log_is_visible_to_auditors_and_admins(acme: Cast) -> None:
    for address in ("/actions/", "/actions/export.csv"):
        codes = [
            signed_in(user).get(address).status_code
            for user in (acme.viewer, acme.editor, acme.auditor, acme.admin)
        ]
        assert codes == [403, 403, 200, 200]
    assert "/actions/" in signed_in(acme.auditor).get("/ledger/").content.decode()
    assert "/actions/" not in signed_in(acme.editor).get("/ledger/").content.decode()


def test_empty_audit_log_is_explained(acme: Cast) -> None:
    assert "No actions yet" in signed_in(acme.admin).get("/actions/").content.decode()
    assert "No matching actions" in signed_in(acme.admin).get("/actions/?verb=x").content.decode()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?actor=Ada", ["one", "two"]),
        ("?actor=ada", []),
        ("?verb=key.create", ["one"]),
        ("?verb=key.", ["one", "three"]),
        ("?verb=key", []),
        ("?subject=T", ["two", "three"]),
        ("?subject=%25", []),
        ("?range=24h", ["one", "two", "three"]),
        ("?actor=%00&verb=%F0%9F", []),
        ("?range=never", []),
        ("?actor=%00", []),
        ("?before=nonsense", ["one", "two", "three"]),
        ("?before=0001-01-01T00:00:00%2B00:00,x", ["one", "two", "three"]),
        ("?before=1971-01-01T00:00:00%2B00:00,00000000-0000-0000-0000-000000000000", []),
    ],
)
def test_filters_select_actions(acme: Cast, query: str, expected: list[str]) -> None:
    act(acme, ("key.create", "one"), ("keyed", "two"))
    act(acme, ("key.revoke", "three"), actor="Bob")
    shown = page(acme, query)
    assert [name for name in ("one", "two", "three") if f">{name}<" in shown] == expected


def test_invalid_filter_is_reported_and_nothing_is_searched(acme: Cast) -> None:
    act(acme, ("key.create", "one"))
    shown = signed_in(acme.auditor).get("/actions/?range=never").content.decode()
    assert "Invalid filter" in shown
    assert "Nothing was searched" in shown


@pytest.mark.one_node
def test_range_excludes_older_actions(acme: Cast) -> None:
    act(acme, ("key.create", "old"))
    as_owner("UPDATE action SET at = at - interval '2 days' WHERE tenant_id = %s", [acme.tenant.id])
    assert ">old<" in page(acme, "?range=7d")
    assert ">old<" not in page(acme, "?range=24h")


def test_keyset_pages_contain_each_action_once(acme: Cast) -> None:
    act(acme, *[("key.create", f"key {n}") for n in range(117)])
    seen: list[str] = []
    answer = api(acme, Scope.READ, limit=50)
    while True:
        seen += [one["subject"] for one in answer["actions"]]
        if answer["next"] is None:
            break
        act(acme, ("key.create", "came meanwhile"))
        answer = api(acme, Scope.READ, limit=50, cursor=answer["next"])
    assert seen == [f"key {n}" for n in reversed(range(117))]
    first = page(acme)
    assert first.count("<tr>") == 50
    (older,) = (part.partition('"')[0] for part in first.split('rel="next" href="')[1:])
    second = page(acme, older.replace("&amp;", "&"))
    assert second.count("<tr>") == 50
    assert "Newest" in second


def test_hostile_names_are_escaped(acme: Cast) -> None:
    act(acme, (HOSTILE, HOSTILE), actor=HOSTILE, **{HOSTILE: HOSTILE})
    shown = page(acme)
    assert "<b>" not in shown
    assert "\u202e" not in shown


def test_viewed_call_is_linked(acme: Cast) -> None:
    pk = "01a202a8-12e6-7013-96ec-b9e7c40a3238"
    act(acme, ("call.view", pk), day="2026-11-20")
    act(acme, ("call.view", "odd"), day="2026-11-20")
    act(acme, ("call.view", pk), day=7)
    assert page(acme).count(f'href="/calls/2026-11-20/{pk}"') == 1


def test_exports_contain_the_listed_actions_and_are_logged(acme: Cast) -> None:
    act(acme, ("key.create", "one"), ("key.create", "=1+1"), note="=2+2")
    act(acme, ("member.add", "two"))
    client = signed_in(acme.auditor)
    answer = client.get("/actions/export.ndjson?verb=key.")
    lines = [json.loads(line) for line in answer.getvalue().decode().splitlines()]
    assert [line["subject"] for line in lines[:-1]] == ["=1+1", "one"]
    assert lines[0]["details"] == {"note": "=2+2"}
    assert lines[-1] == {"count": 2}
    text = client.get("/actions/export.csv?verb=key.").getvalue().decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["subject"] for row in rows[:-1]] == ["'=1+1", "one"]
    assert json.loads(rows[0]["details"]) == {"note": "=2+2"}
    assert rows[-1]["id"] == "# count"
    assert client.get("/actions/export.xml").status_code == 404
    assert client.get("/actions/export.csv?range=never").status_code == 404
    assert page(acme).count("action.export</a>") == 2


def test_key_without_payloads_scope_gets_no_quoted_payloads(acme: Cast) -> None:
    act(acme, ("payload.search", "secret"), ("key.create", "wallboard"), query="secret")
    document = api(acme, Scope.READ)
    assert document["withheld"] is True
    assert "secret" not in json.dumps(document)
    assert [one["subject"] for one in document["actions"]] == ["wallboard", None]
    whole = api(acme, Scope.READ, Scope.PAYLOADS, verb="payload.search")
    assert whole["actions"][0]["details"] == {"query": "secret"}
    assert api(acme, Scope.READ, range="1h", actor="Ada")["actions"]
    assert api(acme, Scope.READ, subject="WALL")["actions"][0]["actor"] == "Ada"


def test_actions_of_another_tenant_are_not_visible(acme: Cast, globex: Cast) -> None:
    act(acme, ("key.create", "wallboard"))
    assert "wallboard" not in page(globex)
    assert api(globex, Scope.READ)["actions"] == []


def test_actions_with_unusual_details_are_readable(acme: Cast) -> None:
    with tenant_scope(acme.tenant.id):
        Action.objects.create(
            tenant=acme.tenant, user_name="Ada", verb="x", subject="y", details=["odd"]
        )
    assert "odd" in page(acme)
