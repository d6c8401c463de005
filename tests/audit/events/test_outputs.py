"""What a stored event says the tool returned, also if it was an MCP tool."""

import json
import time
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tooltrail.guard.jsonschema import compile_schema
from tooltrail.redact_text import MARK

from audit.events.body import Line
from audit.events.candidates import read_lines
from audit.events.judgement import PASSED, Judge, Kind, Verdict, judged_output
from audit.events.outputs import Value, mcp_report, read_output
from audit.index.merge import Call
from audit.index.projection import project
from audit.queries.repetition import result_digest
from tests.support.factories import make_call

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"celsius": {"type": "number"}},
    "required": ["celsius"],
    "additionalProperties": False,
}
WEATHER = {"celsius": 22.5}
TEXT = {"type": "text", "text": json.dumps(WEATHER)}
PROSE = {"type": "text", "text": "warm"}
OF_MCP = {"output_type": "CallToolResult"}
OF_SPAN = {"otlp": {"mapping_version": 1, "convention": "mcp", "span": {}}}
MISSING = Kind("$", "MISSING_STRUCTURED_CONTENT")


def end(data: Any, **members: Any) -> bytes:
    output = {"status": "ok", "data": data, "meta": {}}
    return json.dumps({"type": "toolExecutionEnd", "output": output, **members}).encode()


def bare(output: Any, **members: Any) -> bytes:
    return json.dumps({"type": "toolExecutionEnd", "output": output, **members}).encode()


STRUCTURED = {"content": [PROSE], "structuredContent": WEATHER, "isError": False}


@pytest.mark.parametrize("stated", [OF_MCP, {"outputType": "CallToolResult"}, OF_SPAN], ids=str)
@pytest.mark.parametrize("result", [STRUCTURED, {"content": [TEXT]}], ids=["structured", "text"])
def test_conforming_mcp_result_passes(stated: dict[str, Any], result: dict[str, Any]) -> None:
    for raw in (end(result, **stated), bare(result, **stated)):
        assert read_output(raw) == Value(WEATHER)
        assert Judge("output", SCHEMA, SCHEMA).judge(raw) == PASSED
        assert judged_output(compile_schema(SCHEMA), raw, 10_000).is_valid


@pytest.mark.parametrize(
    "members", [{}, {"output_type": "other"}, {"otlp": {"convention": "gen_ai"}}, {"otlp": 1}]
)
def test_shape_alone_makes_no_mcp_result(members: dict[str, Any]) -> None:
    assert read_output(end(STRUCTURED, **members)) == Value(STRUCTURED)


def test_missing_structured_content_violates_any_schema() -> None:
    raw = end({"content": [PROSE]}, **OF_MCP)
    judged = judged_output(compile_schema(SCHEMA), raw, 10_000)
    assert [(each.path, each.code) for each in judged.violations] == [MISSING]
    kinds, none = frozenset({MISSING}), frozenset[Kind]()
    assert Judge("output", None, SCHEMA).judge(raw) == Verdict(none, kinds, none, none)
    assert Judge("output", SCHEMA, None).judge(raw) == Verdict(kinds, none, none, none)
    assert Judge("output", None, None).judge(raw) == PASSED
    (broken,) = Judge("output", None, SCHEMA).explain(raw)
    assert broken.kind == MISSING


def test_reported_missing_content_is_known_and_can_be_cured() -> None:
    guard = {
        "strategy": "throw",
        "outcome": "failed",
        "violations": [{"path": "$", "code": MISSING.code}],
        "received": {"content": [PROSE]},
    }
    kinds, none = frozenset({MISSING}), frozenset[Kind]()
    verdict = Judge("output", SCHEMA, None).judge(end(None, guard=guard, **OF_MCP))
    assert verdict == Verdict(kinds, none, kinds, kinds)


@pytest.mark.parametrize(
    ("result", "why"),
    [
        ({"content": [PROSE], "isError": True}, "nothing"),
        ({"content": [TEXT], "isError": True}, "nothing"),
        ({"resultType": "input_required", "requestState": "s"}, "nothing"),
        ({"resultType": "task", "task": {"taskId": "1"}}, "nothing"),
        (MARK, "incomplete"),
        ({"content": [PROSE], "structuredContent": MARK}, "incomplete"),
        ({"content": MARK}, "incomplete"),
        ({"content": [{"type": "text", "text": f'{{"a": {MARK}'}]}, "incomplete"),
        ("text", "incomplete"),
    ],
    ids=str,
)
def test_error_or_redacted_result_is_skipped(result: Any, why: str) -> None:
    raw = end(result, **OF_MCP)
    assert read_output(raw) == why
    assert judged_output(compile_schema(SCHEMA), raw, 10_000).is_valid is None


def test_deep_text_of_a_result_is_prose() -> None:
    deep = {"type": "text", "text": "[" * 200_000 + "]" * 200_000}
    value = read_output(end({"content": [deep]}, **OF_MCP))
    assert isinstance(value, Value)
    assert value.is_missing


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (bare({"content": [PROSE], "isError": True}), "warm"),
        (end({"content": [], "isError": True}), ""),
        (end(STRUCTURED), None),
        (bare({"status": "error", "error": {"type": "FATAL"}}), None),
        (b"[]", None),
        (b'{"output": {"isError": true, "x": 1e999}}', ""),
    ],
)
def test_failure_of_an_mcp_result_is_its_text(raw: bytes, message: str | None) -> None:
    assert mcp_report(raw)[0] == message


def test_results_repeat_by_what_the_tool_returned() -> None:
    first = end(STRUCTURED | {"_meta": {"took": 1}}, **OF_MCP)
    again = end({"structuredContent": WEATHER, "content": []}, **OF_MCP)
    other = end({"structuredContent": {"celsius": 1}, "content": [PROSE]}, **OF_MCP)
    assert result_digest(first) == result_digest(again) != result_digest(other)
    prose = [end({"content": [PROSE], "_meta": {"took": n}}, **OF_MCP) for n in (1, 2)]
    assert result_digest(prose[0]) == result_digest(prose[1]) is not None


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.just(MARK),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["content", "structuredContent", "isError", "text", "status", "data", "error"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
_STATED = st.sampled_from([OF_MCP, OF_SPAN, {}, {"output_type": 7}, {"outputType": []}])


@given(ANY, _STATED, ANY)
def test_any_output_of_an_event_is_indexed(output: Any, stated: dict[str, Any], mcp: Any) -> None:
    _, sent = make_call(output=output)
    raw = json.dumps(sent | stated | {"mcp": mcp}).encode()
    now = datetime.now(UTC)
    reading = read_lines([Line(1, raw)], UUID(int=1), now)
    (candidate,) = reading.candidates
    call = Call(candidate.invocation_id, candidate.day, candidate.started_us, end=candidate)
    ending = project(call).ending
    assert ending.state in ("ok", "failed")
    is_error = isinstance(output, dict) and output.get("isError") is True
    if stated == OF_MCP and is_error and "status" not in output:
        assert (ending.state, ending.error_type) == ("failed", "tool_error")


@given(ANY, ANY, _STATED)
def test_any_output_is_read_and_judged(output: Any, guard: Any, stated: dict[str, Any]) -> None:
    raw = bare(output, guard=guard, **stated)
    judge = Judge("output", SCHEMA, None)
    judge.judge(raw)
    judge.explain(raw)
    judged_output(compile_schema(SCHEMA), raw, 10_000)
    mcp_report(raw)
    result_digest(raw)


def test_numbers_with_large_exponents_are_read_quickly() -> None:
    """msgspec alone takes 30 µs for 1e300: a second for an event of 256 KB."""
    raw = b'{"output":{"status":"ok","data":[' + b",".join([b"1e300"] * 40_000) + b"]}}"
    began = time.thread_time()
    value = read_output(raw)
    assert time.thread_time() - began < 0.3
    assert isinstance(value, Value)
    assert value.value == [1e300] * 40_000
    too_large = read_output(b'{"output":{"status":"ok","data":[1e999]}}')
    assert isinstance(too_large, Value)
    assert too_large.value == [float("inf")]
