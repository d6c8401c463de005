"""Violations by side: the page, its export and the API."""

import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from django.test import Client

from tenants.keys import create_key
from tenants.models import Scope
from tests.support.erasures import erase
from tests.support.factories import Cast, make_call, make_decision, send_events
from tests.support.pages import signed_in, text
from tests.support.versions import two_versions

NOW = datetime.now(UTC)


def rejected(path: str = "$.amount", **members: Any) -> dict[str, Any]:
    """A decision that rejected arguments because of the value at a path."""
    wrong = {"path": path, "code": "WRONG_TYPE", "expected": "number", "received": "a secret"}
    return make_decision("rejectedArguments", violations=[wrong], **members)


def broken(path: str = "$.unit") -> dict[str, Any]:
    wrong = {"path": path, "severity": "error", "code": "ENUM_MISMATCH", "expected": "'celsius'"}
    violations = [wrong | {"received": "'kelvin'"}]
    return {"strategy": "warn", "outcome": "passed", "violations": violations}


def api(cast: Cast, path: str) -> Any:
    key = create_key(cast.tenant, "reader", [Scope.READ, Scope.PAYLOADS])[1]
    answer = Client().get(f"/api/v1/{path}", headers={"authorization": f"Bearer {key}"})
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_page_shows_one_side_or_both(acme: Cast) -> None:
    send_events(acme.tenant, [rejected(), *make_call(guard=broken())])
    client = signed_in(acme.editor)
    sides = {
        address: [row.kind.side for row in client.get(f"/violations/{address}").context["rows"]]
        for address in ("", "?side=arguments", "?side=results")
    }
    assert sorted(sides.pop("")) == ["arguments", "results"]
    assert sides == {"?side=arguments": ["arguments"], "?side=results": ["results"]}
    shown = text(client.get("/violations/").content.decode())
    assert "1 of arguments" in shown and "1 of results" in shown
    assert "arguments rejected" in shown
    assert "a secret" not in shown, "what was received is in the decision's event only"
    assert "argument" in text(client.get("/").content.decode())


def test_what_agents_get_wrong_stands_beside_the_description_of_the_version(acme: Cast) -> None:
    tool = two_versions(acme, NOW - timedelta(days=1))
    again = str(uuid.uuid4())
    send_events(
        acme.tenant,
        [
            *(rejected(tool_version="1") for _ in range(2)),
            rejected("$.unit", tool_version="2", invocation_id=again),
            *make_call(tool_version="2", invocation_id=again),
            *make_call(tool_version="2"),
            make_decision("awaiting", tool_version="2"),
        ],
    )
    client = signed_in(acme.viewer)
    answer = client.get("/violations/?side=arguments")
    mistakes = [
        (row.version.description, row.rejected.calls, row.rejected.of_calls)
        for row in answer.context["rejected"].rows
    ]
    assert mistakes == [("Tells the weather.", 2, 2), ("Tells it faster.", 1, 3)]
    assert f"/tools/{tool.pk}/2" in answer.content.decode()
    calls = client.get("/calls/", {"q": answer.context["rejected"].rows[0].query})
    assert len(calls.context["rows"]) == 2
    document = api(acme, "violations?side=arguments")
    assert [(one["registered_number"], one["share"]) for one in document["rejected"]] == [
        (1, 1.0),
        (2, 1 / 3),
    ]


def test_query_of_a_kind_finds_its_calls(acme: Cast) -> None:
    send_events(
        acme.tenant,
        [
            rejected("$.items[4].n"),
            rejected("$.items[5].n"),
            rejected("$.unit"),
            *make_call(guard=broken("$.items[3].n")),
        ],
    )
    client = signed_in(acme.viewer)
    for row in client.get("/violations/").context["rows"]:
        assert len(client.get(row.calls).context["rows"]) == row.kind.calls, row.calls
        assert bool(row.apart) == (row.kind.side == "results")
        assert not row.apart or client.get(row.apart).status_code == 200


def test_export_and_api_have_the_side(acme: Cast) -> None:
    send_events(acme.tenant, [rejected(), *make_call(guard=broken())])
    client = signed_in(acme.editor)
    for side in ("arguments", "results"):
        lines = client.get(f"/violations/export.ndjson?side={side}").content.decode().splitlines()
        assert [json.loads(line).get("side") for line in lines] == [side, None]
        document = api(acme, f"violations?side={side}")
        assert [one["side"] for one in document["violations"]] == [side]
    assert api(acme, "violations")["by_side"] == {"arguments": 1, "results": 1}
    assert "side" in client.get("/violations/export.csv").content.decode().splitlines()[0]
    key = create_key(acme.tenant, "reader", [Scope.READ])[1]
    headers = {"authorization": f"Bearer {key}"}
    assert Client().get("/api/v1/violations?side=both", headers=headers).status_code == 422


def test_single_violations_are_paged_over_both_sides(acme: Cast) -> None:
    at = NOW - timedelta(minutes=5)
    events = [
        *(rejected(decided_at=at) for _ in range(3)),
        *(event for _ in range(3) for event in make_call(started_at=at, guard=broken())),
    ]
    send_events(acme.tenant, events)
    listed: list[tuple[str, str]] = []
    address = "violations/rows?range=1h&limit=1"
    cursor = ""
    while cursor is not None:
        page = api(acme, address + (f"&cursor={cursor}" if cursor else ""))
        listed += [(row["side"], row["invocation_id"]) for row in page["rows"]]
        cursor = page["next"]
    assert len(listed) == len(set(listed)) == 6
    assert {row["received"] for row in page["rows"]} <= {None, "'kelvin'"}


def test_erased_arguments_are_still_counted(acme: Cast) -> None:
    """The index keeps path and code; what was expected is blank, what was received is gone."""
    send_events(acme.tenant, [rejected(case_id="mine")])
    erase(acme)
    (row,) = api(acme, "violations/rows")["rows"]
    assert (row["path"], row["expected"], row["received"]) == ("$.amount", "", None)
