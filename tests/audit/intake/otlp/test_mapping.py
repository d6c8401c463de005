"""Which spans are calls, which spans belong to the same call, and the events made of them."""

import itertools
import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tooltrail.events import EVENT

from audit.events.body import Line
from audit.events.candidates import read_lines
from audit.events.limits import MAX_DEPTH
from audit.events.spans import (
    CLIENT,
    SERVER,
    STATUS_ERROR,
    Event,
    Scope,
    Span,
    Status,
    span_uuid,
)
from audit.intake.otlp.accounts import to_events
from audit.intake.otlp.conventions import MAPPING_VERSION
from audit.intake.otlp.mapping import (
    Mapped,
    ToolCall,
    map_spans,
)

TRACE = "0af7651916cd43dd8448eb211c80319c"
START = 1_795_288_695_000_000_000
INTERNAL = 1  # of SpanKind
GENAI = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather"}
MCP = {"mcp.method.name": "tools/call"}


def span(number: int, parent: int = 0, **members: Any) -> Span:
    """The span of that number; a GenAI tool call unless attributes say otherwise."""
    given: dict[str, Any] = {
        "name": "execute_tool get_weather",
        "kind": INTERNAL,
        "start_time_unix_nano": START + number * 1_000_000,
        "end_time_unix_nano": START + 100_000_000 - number * 1_000_000,
        "attributes": GENAI,
        "scope": Scope("agent"),
    } | members
    return Span(TRACE, f"{number:016x}", f"{parent:016x}" if parent else "", **given)


def other(number: int, parent: int = 0, **members: Any) -> Span:
    """A span that is no tool call."""
    return span(number, parent, **{"name": "chat", "attributes": {}, **members})


def events(call: ToolCall) -> tuple[dict[str, Any], dict[str, Any]]:
    """The events of the calls; each must be valid by the contract."""
    raws = to_events(call)
    reading = read_lines([Line(1, raws[0]), Line(2, raws[1])], UUID(int=7), _now())
    assert [rejection.message for rejection in reading.rejections] == []
    for raw in raws:
        assert b"\n" not in raw
        EVENT.validate_json(raw)
    start, end = (json.loads(raw) for raw in raws)
    return start, end


def only(mapped: Mapped) -> tuple[dict[str, Any], dict[str, Any]]:
    """The events of the only call."""
    (call,) = mapped.calls
    return events(call)


def _now() -> datetime:
    return datetime.fromtimestamp(START / 1e9, UTC)


@pytest.mark.parametrize(
    ("name", "attributes", "expected"),
    [
        (
            "execute_tool get_weather",
            {
                **GENAI,
                "gen_ai.tool.call.id": "call_1",
                "gen_ai.tool.type": "function",
                "gen_ai.tool.call.arguments": '{"city": "London"}',
                "gen_ai.tool.call.result": '{"celsius": 22.5}',
            },
            ("get_weather", "call_1", {"city": "London"}, {"celsius": 22.5}),
        ),
        (
            "execute_tool get_weather",
            {
                **GENAI,
                "gen_ai.tool.call.arguments": {"city": "London"},
                "gen_ai.tool.call.result": ["a", 1, None],
            },
            ("get_weather", None, {"city": "London"}, ["a", 1, None]),
        ),
        (
            "execute_tool get_weather",
            {"gen_ai.operation.name": "execute_tool"},
            ("get_weather", None, None, None),
        ),
        (
            "running tool",
            {
                "gen_ai.tool.name": "get_weather",
                "gen_ai.tool.call.id": "call_1",
                "tool_arguments": '{"city":"a"}',
                "tool_response": "22.5",
            },
            ("get_weather", "call_1", {"city": "a"}, 22.5),
        ),
        (
            "running tool",
            {**GENAI, "tool_arguments": '{"city":"a"}', "tool_response": "a text"},
            ("get_weather", None, {"city": "a"}, "a text"),
        ),
        ("MCP send tools/call get_weather", MCP, ("get_weather", None, None, None)),
        (
            "tools/call get_weather",
            {
                **MCP,
                **GENAI,
                "gen_ai.tool.call.arguments": "{}",
                "gen_ai.tool.call.result": '{"content":[],\n"isError":false}',
            },
            ("get_weather", None, {}, {"content": [], "isError": False}),
        ),
        (
            "get_weather",
            {
                "openinference.span.kind": "TOOL",
                "tool.name": "get_weather",
                "tool.id": "call_1",
                "input.value": '{"city": "London"}',
                "input.mime_type": "application/json",
                "output.value": "22.5",
            },
            ("get_weather", "call_1", {"city": "London"}, "22.5"),
        ),
        (
            "get_weather",
            {
                "openinference.span.kind": "TOOL",
                "tool.parameters": '{"city": "London"}',
                "output.value": "22.5",
                "output.mime_type": "application/json",
            },
            ("get_weather", None, {"city": "London"}, 22.5),
        ),
    ],
)
def test_every_convention_is_mapped(
    name: str, attributes: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    start, end = only(map_spans([span(1, name=name, attributes=attributes)]))

    result = end.get("output", {}).get("data")
    assert (start["tool_name"], start.get("tool_call_id"), start["args"], result) == expected
    assert start["otlp"]["mapping_version"] == end["otlp"]["mapping_version"] == MAPPING_VERSION
    assert end["otlp"]["span"]["attributes"] == attributes
    assert start["invocation_id"] == end["invocation_id"] == str(span_uuid(TRACE, f"{1:016x}"))
    assert not end["is_error"]


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"gen_ai.operation.name": "chat", "gen_ai.tool.name": "get_weather"},
        {"mcp.method.name": "tools/list"},
        {"openinference.span.kind": "LLM"},
        {"gen_ai.operation.name": ["execute_tool"]},
    ],
)
def test_other_spans_are_not_calls(attributes: dict[str, Any]) -> None:
    mapped = map_spans([span(1, attributes=attributes), other(2, name="running tool")])

    assert (mapped.calls, len(mapped.others)) == ([], 2)


def test_span_times_are_kept_to_the_microsecond() -> None:
    start, end = only(map_spans([span(1, start_time_unix_nano=START + 1_999)]))

    assert start["started_at"] == end["started_at"] == "2026-11-21T19:18:15.000001+00:00"
    assert end["ended_at"] == "2026-11-21T19:18:15.099000+00:00"
    assert end["duration_ms"] == pytest.approx(98.998001)


def test_span_without_an_end_has_zero_duration() -> None:
    _, end = only(map_spans([span(1, end_time_unix_nano=0)]))

    assert (end["duration_ms"], end["ended_at"]) == (0.0, end["started_at"])


@pytest.mark.parametrize(
    ("members", "error"),
    [
        ({"status": Status(2, "no such flight")}, {"message": "no such flight"}),
        (
            {"attributes": {**GENAI, "error.type": "timeout"}, "status": Status(2)},
            {"type": "timeout"},
        ),
        (
            {
                "status": Status(2, "a traceback"),
                "events": [
                    Event("exception", 0, {"exception.type": "E", "exception.message": "gone"})
                ],
            },
            {"type": "E", "message": "gone"},
        ),
        (
            {
                "attributes": {
                    **MCP,
                    **GENAI,
                    "error.type": "-32602",
                    "rpc.response.status_code": "-32602",
                },
                "status": Status(2, "Invalid params"),
            },
            {"type": "-32602", "message": "Invalid params", "code": "-32602"},
        ),
        (
            {
                "attributes": {
                    **MCP,
                    **GENAI,
                    "gen_ai.tool.call.result": json.dumps(
                        {"isError": True, "content": [{"type": "text", "text": "sold out"}]}
                    ),
                }
            },
            {
                "type": "tool_error",
                "message": "sold out",
                "details": {
                    "result": {"isError": True, "content": [{"type": "text", "text": "sold out"}]}
                },
            },
        ),
    ],
)
def test_failed_span_maps_to_its_error(members: dict[str, Any], error: dict[str, Any]) -> None:
    _, end = only(map_spans([span(1, **members)]))

    assert end["is_error"]
    assert end["output"]["status"] == "error"
    assert end["output"]["error"] == error


def test_token_usage_is_taken_from_the_span() -> None:
    usage = {"gen_ai.usage.input_tokens": 812, "gen_ai.usage.output_tokens": 64}
    _, end = only(map_spans([span(1, attributes=GENAI | usage)]))

    assert end["output"]["meta"]["token_usage"] == {"prompt": 812, "completion": 64}


def test_agent_conversation_and_model_come_from_parent_spans() -> None:
    agent = {"gen_ai.agent.name": "traveller", "gen_ai.conversation.id": "c-7"}
    mapped = map_spans(
        [
            span(3, 2, attributes=GENAI | {"gen_ai.agent.name": "weather"}),
            other(2, 1, attributes={"gen_ai.request.model": "gpt-5"}),
            other(1, attributes=agent, resource={"service.name": "shop"}),
            span(4, 1, resource={"service.name": "shop"}),
        ]
    )

    first, second = (events(call)[0] for call in mapped.calls)
    assert first["context"] == {"agent": "weather", "conversation": "c-7", "model": "gpt-5"}
    assert second["context"] == {"agent": "traveller", "conversation": "c-7", "service": "shop"}
    assert first["run_id"] == second["run_id"] == "c-7"


def test_calls_nest_through_spans_that_are_not_calls() -> None:
    mapped = map_spans([span(4, 3), other(3, 2), other(2, 1), span(1, 9), span(5, 8)])

    parents = {call.outermost.span_id: call.parent_id for call in mapped.calls}
    assert parents == {
        f"{4:016x}": span_uuid(TRACE, f"{1:016x}"),
        f"{1:016x}": span_uuid(
            TRACE, f"{9:016x}"
        ),  # not in this case: the span has the name itself
        f"{5:016x}": span_uuid(TRACE, f"{8:016x}"),
    }


def layers() -> list[Span]:
    """One call as an agent, an MCP client and an MCP server report it, the innermost first."""
    content = {
        "gen_ai.tool.call.arguments": '{"city": "London"}',
        "gen_ai.tool.call.result": '{"isError": true, "content": []}',
    }
    return [
        span(
            3,
            2,
            kind=SERVER,
            scope=Scope("mcp"),
            attributes=MCP | GENAI | content | {"error.type": "tool_error"},
            status=Status(2),
        ),
        span(2, 1, kind=CLIENT, scope=Scope("mcp"), attributes=MCP, name="tools/call get_weather"),
        span(1, attributes=GENAI | {"gen_ai.tool.call.id": "call_1"}),
    ]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_span_layers_of_one_call_are_merged(order: tuple[int, ...]) -> None:
    spans = layers()
    start, end = only(map_spans([spans[at] for at in order]))

    assert end["otlp"]["span"]["span_id"] == f"{1:016x}"
    assert [each["span_id"] for each in end["otlp"]["merged"]] == [f"{2:016x}", f"{3:016x}"]
    assert (start["args"], start["tool_call_id"]) == ({"city": "London"}, "call_1")
    assert end["output"]["error"]["type"] == "tool_error"
    assert end["duration_ms"] == 98.0  # the outermost's


def test_call_below_a_merged_span_has_the_merged_call_as_parent() -> None:
    below = span(
        4, 3, name="execute_tool look_up", attributes=GENAI | {"gen_ai.tool.name": "look_up"}
    )
    mapped = map_spans([below, *layers()])

    parents = {call.facts[0].tool_name: call.parent_id for call in mapped.calls}
    assert parents == {"look_up": span_uuid(TRACE, f"{1:016x}"), "get_weather": None}


@pytest.mark.parametrize(
    "inner",
    [
        pytest.param({}, id="the same layer: it calls itself"),
        pytest.param(
            {"scope": Scope("mcp"), "attributes": GENAI | {"gen_ai.tool.name": "look_up"}},
            id="another tool",
        ),
        pytest.param(
            {"scope": Scope("mcp"), "attributes": GENAI | {"gen_ai.tool.call.id": "call_2"}},
            id="another call id",
        ),
    ],
)
def test_nested_span_of_a_different_call_stays_separate(inner: dict[str, Any]) -> None:
    outer = span(1, attributes=GENAI | {"gen_ai.tool.call.id": "call_1"})
    mapped = map_spans([outer, span(2, 1, **inner)])

    assert [call.parent_id for call in mapped.calls] == [None, span_uuid(*outer.key)]


def test_server_that_forwards_a_call_makes_a_second_call() -> None:
    mapped = map_spans(
        [
            span(1, kind=SERVER, scope=Scope("mcp"), attributes=MCP | GENAI),
            span(2, 1, kind=CLIENT, scope=Scope("mcp"), attributes=MCP | GENAI),
        ]
    )

    assert len(mapped.calls) == 2


def test_last_of_two_attempts_decides_the_outcome() -> None:
    failed = {"kind": CLIENT, "scope": Scope("mcp"), "attributes": MCP | GENAI, "status": Status(2)}
    worked = failed | {"status": Status(1)}
    _, end = only(
        map_spans(
            [
                span(1),
                span(2, 1, **failed, end_time_unix_nano=START + 50_000_000),
                span(3, 1, **worked, end_time_unix_nano=START + 90_000_000),
            ]
        )
    )

    assert not end["is_error"]


def test_same_spans_produce_the_same_bytes() -> None:
    first, again = (map_spans(layers()).calls[0] for _ in range(2))

    assert to_events(first) == to_events(again)


def test_duplicate_span_counts_once() -> None:
    mapped = map_spans([span(1), span(1), other(2), other(2)])

    assert (len(mapped.calls), len(mapped.others)) == (1, 1)


def test_cyclic_parents_do_not_break_the_mapping() -> None:
    ring = [
        span(1, 2),
        span(2, 1, kind=CLIENT, scope=Scope("mcp"), attributes=MCP | GENAI),
        other(3, 4),
        other(4, 3),
        span(5, 3),
    ]
    mapped = map_spans(ring)

    for call in mapped.calls:
        events(call)
    assert sum(len(call.facts) for call in mapped.calls) + len(mapped.others) == 5


@pytest.mark.slow
def test_chain_of_ten_thousand_parent_spans_is_resolved() -> None:
    chain = [other(number, number + 1) for number in range(2, 10_000)]
    mapped = map_spans([*chain, span(10_000), span(1, 2)])

    assert mapped.calls[1].parent_id == span_uuid(TRACE, f"{10_000:016x}")


@pytest.mark.parametrize(
    "value",
    [
        "nul\x00",
        '{"a": "\\u0000\\ud800"}',
        "[" * 500 + "]" * 500,
        '{"a":' * 200 + "1" + "}" * 200,
        "9" * 5_000,
        "1e999",
        '{"a": 1e999, "a": 2}',
        "NaN",
        '{"a"',
        "",
        "null",
        "007",
        '"quoted"',
        "line\nfeed",
        '{\n"a": 1\r\n}',
        float("nan"),
        float("inf"),
        2**63,
        True,
        None,
        {"a": [{"b": {}}]},
    ],
)
def test_arbitrary_attribute_values_produce_valid_events(value: Any) -> None:
    attributes = {
        **GENAI,
        "gen_ai.tool.call.arguments": value,
        "gen_ai.tool.call.result": value,
        "gen_ai.conversation.id": value,
        "gen_ai.tool.call.id": value,
        "error.type": value,
    }
    only(map_spans([span(1, attributes=attributes, resource={"service.name": value})]))


def test_span_nested_too_deep_is_kept_as_text() -> None:
    deep: Any = "bottom"
    for _ in range(MAX_DEPTH):
        deep = {"in": deep}
    _, end = only(map_spans([span(1, attributes=GENAI | {"x": deep})]))

    assert json.loads(end["otlp"]["span"]["attributes"]["x"]) == deep


def test_names_too_long_for_the_contract_are_truncated_or_omitted() -> None:
    long = "x" * 1_000
    attributes = GENAI | {"gen_ai.tool.name": long, "gen_ai.conversation.id": long}
    start, _ = only(map_spans([span(1, attributes=attributes)]))

    assert start["tool_name"] == "x" * 256
    assert "run_id" not in start
    assert start["context"]["conversation"] == long


def test_span_is_restored_from_the_log() -> None:
    (merged,) = map_spans(layers()).calls
    source = msgspec.json.decode(to_events(merged)[1])["otlp"]
    spans = [msgspec.convert(each, Span) for each in (source["span"], *source["merged"])]

    assert spans == layers()[::-1]


def tool_of(name: str, **attributes: Any) -> dict[str, Any]:
    return {**MCP, "gen_ai.tool.name": name, **attributes}


def mounted_call() -> list[Span]:
    """A call of a tool of a mounted server, as FastMCP 3.4 and 4.1 report it."""
    fastmcp: dict[str, Any] = {"scope": Scope("fastmcp")}
    handed_on = {**MCP, "fastmcp.component.key": "lookup"}
    return [
        span(1, kind=CLIENT, attributes=tool_of("m_lookup"), **fastmcp),
        span(2, 1, kind=SERVER, attributes=tool_of("m_lookup"), **fastmcp),
        span(3, 2, kind=INTERNAL, name="delegate lookup", attributes=handed_on, **fastmcp),
        span(4, 3, kind=SERVER, attributes=tool_of("lookup"), **fastmcp),
    ]


def test_call_of_a_mounted_tool_is_one_call() -> None:
    spans = mounted_call()
    spans[3].status = Status(STATUS_ERROR, "no such key")
    for order in itertools.permutations(spans):
        (call,) = map_spans(order).calls
        start, end = events(call)
        assert start["tool_name"] == "m_lookup"
        assert len(call.facts) == 4
        assert (end["is_error"], end["output"]["error"]["message"]) == (True, "no such key")
        # Read again from what is kept, it is the same call.
        assert len(map_spans([facts.span for facts in call.facts]).calls) == 1


def test_mounted_tool_that_calls_another_tool_makes_two_calls() -> None:
    other_tool = span(5, 4, attributes=tool_of("fetch"), scope=Scope("fastmcp"))
    calls = map_spans([*mounted_call(), other_tool]).calls
    assert [(call.facts[0].tool_name, call.parent_id) for call in calls] == [
        ("m_lookup", None),
        ("fetch", calls[0].invocation_id),
    ]


def test_server_beside_its_client_is_the_same_call() -> None:
    """A nested in-memory client of FastMCP 3.4: both spans have the tool around them as parent."""
    fastmcp: dict[str, Any] = {"scope": Scope("fastmcp"), "attributes": tool_of("lookup")}
    outer = span(1, kind=SERVER, attributes=tool_of("outer"), scope=Scope("fastmcp"))
    client, server = span(2, 1, kind=CLIENT, **fastmcp), span(3, 1, kind=SERVER, **fastmcp)
    server.status = Status(STATUS_ERROR, "no such key")
    below = span(4, 3, attributes=tool_of("fetch"))
    for order in itertools.permutations([outer, client, server, below]):
        calls = {call.facts[0].tool_name: call for call in map_spans(order).calls}
        assert calls.keys() == {"outer", "lookup", "fetch"}
        assert calls["lookup"].outermost is client
        assert calls["lookup"].parent_id == calls["outer"].invocation_id
        assert calls["fetch"].parent_id == calls["lookup"].invocation_id
        _, end = events(calls["lookup"])
        assert (end["is_error"], end["output"]["error"]["message"]) == (True, "no such key")


def test_server_beside_a_client_of_another_time_or_tool_is_a_call_of_its_own() -> None:
    named = {"attributes": tool_of("lookup"), "scope": Scope("fastmcp")}
    outer = span(1, kind=SERVER, attributes=tool_of("outer"), scope=Scope("fastmcp"))
    client = span(2, 1, kind=CLIENT, **named)
    late = span(3, 1, kind=SERVER, **named)
    late.end_time_unix_nano = client.end_time_unix_nano + 1
    fetch = span(4, 1, kind=SERVER, attributes=tool_of("fetch"), scope=Scope("fastmcp"))
    assert len(map_spans([outer, client, late, fetch]).calls) == 4
    # Two clients around it: neither is taken.
    within = span(6, 1, kind=SERVER, **named)
    assert len(map_spans([outer, client, span(5, 1, kind=CLIENT, **named), within]).calls) == 4
