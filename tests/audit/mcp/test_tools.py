"""The tools of `/mcp`: schemas, budgets, cursors, payloads, tenants, bad arguments."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from audit.events.judgement import PASSED, Judge
from audit.mcp.answers import tokens_of
from audit.mcp.tools import TOOLS
from tests.support.api_record import PAYLOAD, Record, make_record
from tests.support.drift import OUTPUT_SCHEMA, send_outputs
from tests.support.event_requests import post
from tests.support.factories import Cast, make_call, make_cast, make_ingest_key, send_events
from tests.support.mcp_agent import WITH_PAYLOADS, Agent, arguments_about
from tests.support.pages import signed_in
from tests.support.replays import publish_contract


@pytest.fixture(scope="module")
def record() -> Record:
    """A tenant with every kind of data; tests only read it."""
    return make_record(make_cast("acme"))


def judged(tool: str, result: dict[str, Any]) -> object:
    """The verdict of our own judge on a result, as if the call had been recorded."""
    schema = TOOLS[tool].described["outputSchema"]
    event = {"output_type": "CallToolResult", "output": {"status": "ok", "data": result}}
    return Judge("output", schema, schema).judge(json.dumps(event).encode())


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_answers_conform_to_their_schemas(record: Record, tool: str) -> None:
    agent = Agent(record.cast.tenant, WITH_PAYLOADS)
    result = agent.call(tool, **arguments_about(record, tool))
    assert not result["isError"], result
    assert judged(tool, result) == PASSED
    answer = result["structuredContent"]
    assert answer["untrusted"].get("items") != [], "the record has something for each tool"
    assert tokens_of(answer) <= 4_000
    broken = {**result, "structuredContent": {**answer, "untrusted": 1}}
    assert judged(tool, broken) != PASSED, "the judge sees a broken answer"
    # The text has the same data, between lines with a mark.
    words, data = (part["text"] for part in result["content"])
    begin, line, end = data.splitlines()
    assert json.loads(line) == answer["untrusted"]
    assert begin.replace("begins", "ends") == end
    assert begin.split()[2] not in words + line


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_payloads_need_the_scope(record: Record, tool: str) -> None:
    result = Agent(record.cast.tenant).call(tool, **arguments_about(record, tool))
    assert not result["isError"], result
    assert judged(tool, result) == PASSED
    assert PAYLOAD not in json.dumps(result)


def test_payloads_are_shown_with_the_scope(record: Record) -> None:
    agent = Agent(record.cast.tenant, WITH_PAYLOADS)
    call = agent.use("get_call", invocation_id=str(record.failed))["untrusted"]
    assert call["start"]["event"]["args"] == {"q": PAYLOAD}
    assert call["error_message"] == PAYLOAD
    [found] = agent.use("search_calls", q="state:failed")["untrusted"]["items"]
    assert found["error_message"] == PAYLOAD


@pytest.mark.parametrize("tool", ["get_call", "get_trace", "tool_contract", "prove_call"])
def test_another_tenants_object_is_not_found(record: Record, globex: Cast, tool: str) -> None:
    result = Agent(globex.tenant, WITH_PAYLOADS).call(tool, **arguments_about(record, tool))
    assert result["isError"]
    assert "structuredContent" not in result


@pytest.mark.parametrize(
    ("tool", "given", "said"),
    [
        ("search_calls", {"q": "state:nonsense"}, "state"),
        ("search_calls", {"query": "tool:a"}, "Unknown argument. Available: cursor, from"),
        ("search_calls", {"limit": 0}, "limit: Input should be greater than or equal to 1"),
        ("search_calls", {"cursor": "forged"}, "cursor must be the next of an earlier response"),
        ("search_calls", {"max_tokens": 10}, "max_tokens"),
        ("search_calls", {"range": "3 weeks"}, "range must be minutes, hours or days"),
        ("get_call", {}, "invocation_id: Field required"),
        ("get_call", {"invocation_id": "1"}, "invocation_id"),
        ("get_trace", {"trace_id": "a\x00b"}, "Trace not found"),
        ("tool_contract", {"tool": "a\x00b"}, "No such tool"),
        ("tool_contract", {"tool": "get_weather", "version": 99}, "no such version"),
        ("prove_call", {}, "Set either index or invocation_id"),
    ],
)
def test_bad_arguments_are_explained(
    record: Record, tool: str, given: dict[str, Any], said: str
) -> None:
    result = Agent(record.cast.tenant).call(tool, **given)
    assert result["isError"]
    assert said in result["content"][0]["text"]


NAMES = tuple(f"t{n}" for n in range(12))


def many_calls(cast: Cast, count: int) -> None:
    start = datetime.now(UTC) - timedelta(minutes=5)
    error = {"type": "E", "code": "BAD", "message": "long " * 100}
    for n in range(count):
        output = {"status": "error", "error": error, "meta": {"took_ms": 1}}
        at = start + timedelta(seconds=n)
        send_events(cast.tenant, make_call(tool_name=f"t{n}", started_at=at, output=output))


def test_pages_fit_the_budget_and_miss_no_call(acme: Cast) -> None:
    many_calls(acme, 12)
    agent = Agent(acme.tenant, WITH_PAYLOADS)
    listed: list[str] = []
    cursor, pages = "", 0
    while True:
        answer = agent.use("search_calls", max_tokens=1_200, limit=10, cursor=cursor)
        assert tokens_of(answer) <= 1_200
        listed += [call["tool_name"] for call in answer["untrusted"]["items"]]
        pages += 1
        if (cursor := answer.get("next_cursor", "")) == "":
            break
        if pages == 1:
            assert answer["left_out"]["rows"] == 10 - len(listed)
    assert listed == list(reversed(NAMES))
    assert pages > 2


def test_long_texts_are_cut_and_counted(acme: Cast) -> None:
    output = {"status": "ok", "data": {"text": "x" * 50_000, "rows": list(range(900))}, "meta": {}}
    [start, end] = make_call(output=output)
    send_events(acme.tenant, [start, end])
    agent = Agent(acme.tenant, WITH_PAYLOADS)
    answer = agent.use("get_call", invocation_id=start["invocation_id"], max_tokens=2_000)
    assert tokens_of(answer) <= 2_000
    data = answer["untrusted"]["end"]["event"]["output"]["data"]
    assert answer["left_out"]["characters"] == 50_000 - (len(data["text"]) - 1)
    assert answer["left_out"]["items"] == 900 - len(data["rows"])
    assert judged("get_call", {"structuredContent": answer, "content": []}) == PASSED


def test_what_can_not_fit_is_an_error(acme: Cast) -> None:
    data = {f"member {n}": n for n in range(2_000)}
    [start, end] = make_call(output={"status": "ok", "data": data, "meta": {}})
    send_events(acme.tenant, [start, end])
    agent = Agent(acme.tenant, WITH_PAYLOADS)
    result = agent.call("get_call", invocation_id=start["invocation_id"], max_tokens=500)
    assert result["isError"]
    assert "does not fit" in result["content"][0]["text"]


def test_lines_of_a_trace_are_paged(acme: Cast) -> None:
    many_calls(acme, 5)
    agent = Agent(acme.tenant)
    first = agent.use("get_trace", trace_id="trace-123", limit=3)
    rest = agent.use("get_trace", trace_id="trace-123", cursor=first["next_cursor"])
    lines = first["untrusted"]["items"] + rest["untrusted"]["items"]
    names = [next(word for word in line.split() if word in NAMES) for line in lines]
    assert names == list(NAMES[:5])
    assert "next_cursor" not in rest


def test_numbers_that_json_or_python_cannot_have(acme: Cast) -> None:
    [start, end] = make_call()
    line = json.dumps(end).replace('"data": {}', f'"data": {{"a": 1e999, "b": {"9" * 5_000}}}')
    send_events(acme.tenant, [start])
    assert post(make_ingest_key(acme.tenant), line.encode()).status_code == 200
    agent = Agent(acme.tenant, WITH_PAYLOADS)
    answer = agent.use("get_call", invocation_id=start["invocation_id"])
    data = answer["untrusted"]["end"]["event"]["output"]["data"]
    assert data["a"] == "1e999"
    assert data["b"].startswith("999")


def without_null(value: Any) -> Any:
    """A JSON value without members that are null."""
    if isinstance(value, list):
        return [without_null(one) for one in value]
    if isinstance(value, dict):
        return {name: without_null(one) for name, one in value.items() if one is not None}
    return value


def test_what_changed_tells_drift_as_the_api_does(record: Record) -> None:
    agent = Agent(record.cast.tenant)
    changes = agent.use("what_changed", tool="get_weather")["untrusted"]["items"]
    [found] = [one for one in changes if one["kind"] == "drift"]
    headers = {"Authorization": f"Bearer {agent.key}"}
    told = Client().get(f"/api/v1/tools/{record.tool}/drift", headers=headers).json()
    assert found["at"] == told["analyzed_at"]
    assert found["drift"] == without_null(told)
    earlier = {"from": "2020-01-01T00:00:00Z", "to": "2020-01-02T00:00:00Z"}
    assert agent.use("what_changed", **earlier)["untrusted"]["items"] == []


def test_what_changed_compares_a_version_that_was_published_this_moment(acme: Cast) -> None:
    for kind in ("number", "string"):
        properties = {"celsius": {"type": kind}}
        publish_contract(acme, output_schema={"type": "object", "properties": properties})
    [newest, first] = Agent(acme.tenant).use("what_changed")["untrusted"]["items"]
    assert (newest["before_version"], newest["consumers"]) == (1, "breaking")
    assert newest["changes"]
    assert "before_version" not in first


def test_only_the_last_analysis_of_a_tool_is_listed(acme: Cast, globex: Cast) -> None:
    tool = publish_contract(acme, output_schema=OUTPUT_SCHEMA)
    send_outputs(acme, [{"celsius": 1, "wind": n} for n in range(30)], tool_name="get_weather")
    address = f"/tools/{tool.pk}/drift/analyze"
    for _ in range(2):
        signed_in(acme.editor).post(address, {"limit": "1000", "range": "24h"})
    answer = Agent(acme.tenant).use("what_changed", max_tokens=800)
    [found] = [one for one in answer["untrusted"]["items"] if one["kind"] == "drift"]
    [wind] = [one for one in found["drift"]["differences"] if "wind" in one["path"]]
    assert (wind["kind"], wind["calls"], wind["of"]) == ("undeclared", 30, 30)
    assert tokens_of(answer) <= 800
    assert "items" in Agent(globex.tenant).use("what_changed")["untrusted"]
    assert Agent(globex.tenant).use("what_changed")["untrusted"]["items"] == []


def test_explain_names_the_term_that_excludes_the_rest(record: Record) -> None:
    agent = Agent(record.cast.tenant)
    explained = agent.use("explain", q="tool:search state:ok")["untrusted"]
    assert "newest" not in explained
    search, state = explained["terms"]
    assert search["term"] == "tool:search"
    assert {"newest_alone", "newest_without"} <= search.keys()
    assert {"newest_alone", "newest_without"} <= state.keys()
    unknown = agent.use("explain", q="tool:nobody")["untrusted"]["terms"][0]
    assert "newest_alone" not in unknown
    [problem] = agent.use("explain", q="tool:search state:nonsense")["untrusted"]["problems"]
    assert (problem["start"], problem["end"]) == (18, 26)
