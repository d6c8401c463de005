"""All lists of the API have one shape: the parameters, the envelope, and how old names go on."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import pytest
from django.utils.http import urlencode

from config.openapi import description
from tenants.models import Scope
from tests.support.api_client import Program, program
from tests.support.api_record import VIOLATION
from tests.support.factories import Cast, make_call, send_events

RANGE = {"range", "from", "to"}
NOT_LISTS: Mapping[str, str] = {
    "diff_tool": "from and to are numbers of versions",
    "read_effect": "range is how far before and after a version",
}
"""Operations whose parameters only look like those of a range, each with the reason."""
WITHOUT_QUERY: Mapping[str, tuple[str, ...]] = {
    "rows are what people and programs set, and no calls": (
        *("list_alert_rules", "list_channels", "list_holds", "list_invitations", "list_keys"),
        "list_streams",
        *("list_maintenance_windows", "list_members", "list_polling_tools", "list_price_lists"),
        *("list_boards", "list_identity_providers", "list_notes", "list_share_links"),
        *("list_service_accounts", "list_tools", "list_views", "list_definitions"),
    ),
    "rows are what happened to other things than calls": (
        *("list_actions", "list_alerts", "list_deliveries", "list_erasures", "list_reports"),
        *("list_checkpoints", "list_ledger_keys", "list_samples", "list_floor_requests"),
        "list_incidents",
    ),
    "rows are lines that became no call, or who sends them": ("list_inbox", "list_producers"),
    "rows are requests and answers; most of their calls have not run": (
        *("list_approvals", "read_approval_summary"),
    ),
    "the calls are named otherwise: by a search, two versions, a range of the ledger": (
        *("read_search", "read_effect", "download_evidence"),
    ),
}
"""Lists and figures of a range that have no `q`, by the reason."""


def lists(document: Mapping[str, Any]) -> Iterator[tuple[str, set[str], dict[str, Any]]]:
    """Of each list: operation, parameters of the query, and the members of its answer."""
    for methods in document["paths"].values():
        operation = methods.get("get")
        if operation is None:
            continue
        names = {one["name"] for one in operation["parameters"] if one["in"] == "query"}
        contents: dict[str, Any] = operation["responses"]["200"].get("content", {})
        schemas = [one["schema"] for one in contents.values() if "schema" in one]
        schema: dict[str, Any] = schemas[0] if schemas else {}
        members = _resolved(document, schema).get("properties", {})
        if operation["operationId"].startswith("list_") or "next" in members or "items" in members:
            yield operation["operationId"], names, members


def differences(document: Mapping[str, Any]) -> list[str]:
    """One line for each list that has another shape than the others."""
    found: list[str] = []
    without = {name for some in WITHOUT_QUERY.values() for name in some}
    for name, parameters, members in lists(document):
        found += [f"{name}: no {one} in the answer" for one in {"items", "next"} - members.keys()]
        found += [f"{name}: no parameter {one}" for one in {"cursor", "limit"} - parameters]
        if "q" not in parameters and name not in without:
            found.append(f"{name}: no parameter q")
    for methods in document["paths"].values():
        for one in methods.values():
            used = RANGE & {each["name"] for each in one["parameters"] if each["in"] == "query"}
            if used and used != RANGE and one["operationId"] not in NOT_LISTS:
                found.append(f"{one['operationId']}: of a range it has only {sorted(used)}")
            is_queried = {"q", "a"} & {each["name"] for each in one["parameters"]}
            if used == RANGE and not is_queried and one["operationId"] not in without:
                found.append(f"{one['operationId']}: of a range, and no parameter q")
    return found


def _resolved(document: Mapping[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in schema:
        return schema
    found: dict[str, Any] = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found


def test_all_lists_have_one_shape() -> None:
    found = differences(description())
    assert not found, "\n".join(found)


def test_exceptions_exist_and_have_a_reason() -> None:
    operations = {
        one["operationId"] for each in description()["paths"].values() for one in each.values()
    }
    without = [name for some in WITHOUT_QUERY.values() for name in some]
    assert len(without) == len(set(without))
    assert NOT_LISTS.keys() | set(without) <= operations
    assert all(len(reason) > 20 for reason in (*NOT_LISTS.values(), *WITHOUT_QUERY))
    queried = {name for name, parameters, _ in lists(description()) if "q" in parameters}
    assert not queried & set(without)


@pytest.mark.parametrize(
    ("parameters", "members", "told"),
    [
        ([], {"items": {"type": "array", "items": {}}, "next": {}}, "no parameter cursor"),
        (["cursor", "limit"], {"calls": {"type": "array", "items": {}}}, "no items in the answer"),
        (["cursor", "limit", "range"], {"items": {"items": {}}, "next": {}}, "only ['range']"),
        (
            ["cursor", "limit"],
            {"items": {"items": {"properties": {"trace_id": {}}}}, "next": {}},
            "no parameter q",
        ),
        (["range", "from", "to"], {}, "of a range, and no parameter q"),
    ],
)
def test_another_shape_would_be_reported(
    parameters: list[str], members: dict[str, Any], told: str
) -> None:
    operation = {
        "operationId": "list_strange",
        "parameters": [{"name": name, "in": "query"} for name in parameters],
        "responses": {"200": {"content": {"json": {"schema": {"properties": members}}}}},
    }
    found = differences({"paths": {"/strange": {"get": operation}}, "components": {}})
    assert any(told in line for line in found)


def test_old_names_go_on_and_say_so(acme: Cast) -> None:
    send_events(acme.tenant, make_call())
    api = program(acme.tenant, Scope.READ)
    answer = api.send("GET", "calls")
    assert answer.json()["calls"] == answer.json()["items"]
    assert answer["Deprecation"].startswith("@")
    deprecated = datetime.fromtimestamp(int(answer["Deprecation"][1:]), UTC)
    assert parsedate_to_datetime(answer["Sunset"]) > deprecated
    assert '/api/v1/docs#lists>; rel="deprecation"' in answer["Link"]
    old = description()["components"]["schemas"]["CallPage"]["properties"]["calls"]
    assert old["deprecated"] is True


def test_who_prefers_items_gets_only_them(acme: Cast) -> None:
    for _ in range(2):
        send_events(acme.tenant, make_call())
    api = program(acme.tenant, Scope.READ)
    plain = api.send("GET", "calls?limit=1")
    answer = api.send("GET", "calls?limit=1", headers={"Prefer": "respond-async, items"})
    assert answer.json().keys() == plain.json().keys() - {"calls"}
    assert answer["Preference-Applied"] == "items"
    assert "Deprecation" not in answer
    assert 'rel="deprecation"' not in answer["Link"]
    assert 'rel="next"' in answer["Link"]
    assert "Prefer" in answer["Vary"]
    assert answer["ETag"] != plain["ETag"]


def test_what_never_had_another_name_is_not_deprecated(acme: Cast) -> None:
    answer = program(acme.tenant, Scope.READ).send("GET", "summary")
    assert "Deprecation" not in answer


@pytest.mark.parametrize("path", ["calls", "open", "traces", "actions", "inbox", "alerts"])
def test_ranges_of_lists(path: str, acme: Cast) -> None:
    api = program(acme.tenant)
    assert "items" in api.get(f"{path}?range=24h")
    assert "items" in api.get(f"{path}?from=2026-11-20&to=2026-11-21")
    assert api.refused(f"{path}?range=24h&from=2026-11-20", method="GET") == (422, "range")
    assert api.refused(f"{path}?range=soon", method="GET") == (422, "range")
    assert api.refused(f"{path}?to=2026-11-20", method="GET") == (422, "range")


def test_range_of_figures_is_one_of_both(acme: Cast) -> None:
    api = program(acme.tenant)
    assert api.refused("summary?range=24h&from=2026-11-20", method="GET") == (422, "range")


def _at(minutes: int) -> datetime:
    return datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=minutes)


def _walk(api: Program, path: str, limit: int, **query: str) -> list[Any]:
    """All rows of a list, page by page."""
    rows: list[Any] = []
    cursor = ""
    for _ in range(50):
        sent = {**query, "limit": str(limit), **({"cursor": cursor} if cursor else {})}
        page = api.get(f"{path}?{urlencode(sent)}")
        assert len(page["items"]) <= limit
        rows += page["items"]
        if (cursor := page["next"] or "") == "":
            return rows
    raise AssertionError("the pages do not end")


def test_calls_and_traces_of_a_range(acme: Cast) -> None:
    for minutes in (10, 20, 30):
        send_events(acme.tenant, make_call(trace_id=f"t{minutes}", started_at=_at(minutes)))
    api = program(acme.tenant)
    query = {"from": _at(25).isoformat(), "to": _at(15).isoformat()}
    assert [one["trace_id"] for one in _walk(api, "calls", 1, **query)] == ["t20"]
    assert [one["trace_id"] for one in _walk(api, "traces", 1, **query)] == ["t20"]
    of_query = _walk(api, "calls", 1, q="trace:t30", **query)
    assert of_query == []


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 2, 100])
def test_traces_of_a_query(limit: int, acme: Cast) -> None:
    """A trace with several matching calls is listed once, also across pages."""
    for n in range(5):
        for again in range(3):
            send_events(
                acme.tenant,
                make_call(
                    tool_name="search" if n != 2 else "other",
                    trace_id=f"t{n}",
                    started_at=_at(60 - n - 10 * again),
                ),
            )
    api = program(acme.tenant)
    listed = _walk(api, "traces", limit, q="tool:search")
    assert [one["trace_id"] for one in listed] == ["t4", "t3", "t1", "t0"]
    assert {one["calls_started"] for one in listed} == {3}
    assert [
        one["trace_id"] for one in _walk(api, "traces", limit, q="tool:search", trace="t3")
    ] == ["t3"]
    assert _walk(api, "traces", limit, q="tool:search", state="failed") == []


def test_traces_refuse_terms_on_payloads(acme: Cast) -> None:
    api = program(acme.tenant)
    assert api.refused("traces?q=args.q:x", method="GET") == (422, "query")


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_violations_of_a_query(limit: int, acme: Cast) -> None:
    for n in range(3):
        guard = {
            "strategy": "throw",
            "outcome": "failed",
            "violations": [{**VIOLATION, "path": f"$.rows[{m}]"} for m in range(n + 1)],
        }
        send_events(
            acme.tenant,
            make_call(tool_name=f"tool-{n}", started_at=_at(10 + n), guard=guard),
        )
    api = program(acme.tenant)
    every = _walk(api, "violations/rows", limit)
    assert len(every) == 6
    assert _walk(api, "violations/rows", limit, q="tool:tool-*") == every
    of_one = [one for one in every if one["tool_name"] == "tool-2"]
    assert _walk(api, "violations/rows", limit, q="tool:tool-2") == of_one
    assert _walk(api, "violations/rows", limit, q="tool:tool-*", tool="tool-2") == of_one
    assert _walk(api, "violations/rows", limit, q="tool:tool-2", code="OTHER") == []
    assert api.refused("violations/rows?q=tool:x&side=arguments", method="GET") == (422, "query")


@pytest.mark.parametrize("path", ["latency", "tokens"])
def test_figures_are_paged_within_one_range(path: str, acme: Cast) -> None:
    for n in range(5):
        send_events(acme.tenant, make_call(tool_name=f"tool-{n}", started_at=_at(10)))
    api = program(acme.tenant)
    first = api.get(f"{path}?limit=2&range=1h")
    second = api.get(f"{path}?limit=2&range=1h&cursor={first['next']}")
    assert (first["from"], first["to"]) == (second["from"], second["to"])
    listed = [one["tool_name"] for one in _walk(api, path, 2)]
    assert listed == sorted(listed)
    assert len(listed) == 5
    assert api.refused(f"{path}?cursor=abc", method="GET") == (422, "cursor")


def test_short_lists_are_paged(acme: Cast) -> None:
    api = program(acme.tenant, owner=acme.editor)
    for name in ("é", "a b", "Z", "10"):
        api.do("views", {"name": name, "q": "state:error"})
        api.do("polling-tools", {"tool": name})
    assert [one["name"] for one in _walk(api, "views", 1)] == ["10", "Z", "a b", "é"]
    assert _walk(api, "polling-tools", 3) == ["10", "Z", "a b", "é"]
    for label in ("first", "second", "third"):
        api.do("invitations", {"label": label})
    labels = [one["label"] for one in _walk(api, "invitations", 1)]
    assert labels == ["third", "second", "first"]


FIGURES = (
    *("summary", "latency", "tokens", "violations", "repeats"),
    *("agents", "conversations"),
)


def _both(some: dict[str, Any], whole: dict[str, Any]) -> list[tuple[Any, Any]]:
    return list(zip(some["items"], whole["items"], strict=True))


@pytest.mark.parametrize("path", FIGURES)
def test_figures_of_a_query(path: str, acme: Cast) -> None:
    """A query that finds all calls changes no figure, one that finds none leaves none."""
    guard = {"strategy": "throw", "outcome": "failed", "violations": [VIOLATION]}
    for n in range(6):
        members: dict[str, Any] = {"guard": guard} if n % 2 else {}
        call = make_call(
            tool_name=f"tool-{n % 2}",
            trace_id="t",
            run_id="r",
            call_id="same",
            started_at=_at(10),
            **members,
        )
        send_events(acme.tenant, call)
    api = program(acme.tenant)
    span = urlencode({"from": _at(60).isoformat(), "to": _at(5).isoformat()})
    whole = api.get(f"{path}?{span}")
    assert api.get(f"{path}?{span}&q=tool:tool-*") == whole
    assert api.get(f"{path}?{span}&q=") == whole
    some = api.get(f"{path}?{span}&q=NOT+tool:tool-0")
    if path == "summary":
        assert (some["calls"], some["violating_calls"]) == (3, 3)
    elif path in ("agents", "conversations"):
        assert [(one["calls"], other["calls"]) for one, other in _both(some, whole)] == [(3, 6)]
    else:
        assert {one["tool_name"] for one in some["items"]} == {"tool-1"}
    none = api.get(f"{path}?{span}&q=agent:nobody")
    assert none.get("items", []) == []
    assert none.get("calls", 0) == none.get("repeated", 0) == 0
    assert none.get("searched_until") is None


@pytest.mark.parametrize("path", FIGURES)
@pytest.mark.parametrize("query", ["tool:", "state:none", "args.q:x", "(tool:a"])
def test_figures_refuse_what_lists_refuse(path: str, query: str, acme: Cast) -> None:
    api = program(acme.tenant)
    sent = urlencode({"q": query})
    assert api.refused(f"{path}?{sent}", method="GET") == (422, "query")


def test_figures_of_a_query_have_a_tool_and_its_times(acme: Cast) -> None:
    for minutes in (10, 20, 30):
        send_events(acme.tenant, make_call(tool_name=f"t{minutes}", started_at=_at(minutes)))
    api = program(acme.tenant)
    listed = api.get("latency?range=1h&q=NOT+tool:t10&tool=t20")["items"]
    assert [one["tool_name"] for one in listed] == ["t20"]
    assert api.get("tokens?range=1h&q=NOT+tool:t10&tool=t10")["items"] == []
    assert api.get("summary?range=1h&q=since:15m")["calls"] == 1
    assert api.get("summary?range=25m&q=since:2h")["calls"] == 2
    assert api.get("repeats?range=1h&q=since:2d+until:1d")["items"] == []
    assert api.refused("violations?q=tool:x&side=arguments", method="GET") == (422, "query")
