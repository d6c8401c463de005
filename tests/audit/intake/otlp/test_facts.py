"""What frameworks and instrumentations really send: one good and one failed call of each pair.

`vectors/spans.json` holds spans that real packages sent with a scripted model: a call of
`get_weather(city="London")`, and one of `boom(code=7)` that raises ValueError("boom 7").
"""

from typing import Any

import pytest

from audit.events.spans import STATUS_ERROR, Span, Status
from audit.intake.otlp.mapping import map_spans
from audit.intake.otlp.wrappers import stated_error
from tests.support.otlp.sent_spans import SPANS, START, TRACE, events_of, read

PAIRS = sorted({name.partition(" ")[0] for name in SPANS})

NO_CONTENT = {"autogen", "fastmcp3", "fastmcp4", "oaa-sens"}
"""Pairs that send neither arguments nor results."""
NO_NAMES = {
    "langchain-oi": "London",
    "lc-js": "London",
    "lc-toolexc": "London",
    "langfuse": {"args": ["London"], "kwargs": {}},
    "tl-dec": {"args": ["London"], "kwargs": {}},
}
"""What pairs send as arguments that do not send the arguments' names."""
MCP = {"mcp-mid", "lf-mcp"}
"""Pairs whose results are CallToolResults, which events keep whole."""
GUESSED = {
    "agn": ["result"],
    "langchain-lit": ["args", "result"],
    "sk": ["result"],
}
"""Pairs that send Python's `str()` of values."""
REDACTED = {"oaa-logfire", "oaa-oi", "oaa-sens"}
"""Pairs whose messages the framework has removed."""
AGENTS = {
    "adk-content": "main_agent",
    "adk-legacy": "main_agent",
    "adk-oi": "main_agent",
    "langchain-ls": "main_agent",
    "langchain-oi": "main_agent",
    "langchain-trace": "main_agent",
    "pydantic-ai": "main_agent",
    "tl-dec": "ag",
    "vercel-ai": "main_agent",
    "vercel-oi": "main_agent",
}
"""The agent, if the tool's own span names it."""
CONVERSATIONS = {
    *("adk-oi", "langchain-ls", "langchain-oi", "langchain-trace", "lc-js", "pydantic-ai"),
    *("strands", "vercel-ai", "vercel-oi"),
}
"""Pairs whose tool's span names the conversation conv-1."""


@pytest.mark.parametrize("pair", PAIRS)
def test_good_call_arrives_whole(pair: str) -> None:
    start, end = events_of(read(f"{pair} ok"))

    assert start["tool_name"] == {"sk": "Main-get_weather", "mcp-mid": "mid_weather"}.get(
        pair, "get_weather"
    )
    assert not end["is_error"]
    city = "Rome" if pair == "mcp-mid" else "London"
    is_without = pair in NO_CONTENT | {"claude-sdk"}  # which sends results only
    assert start["args"] == (None if is_without else NO_NAMES.get(pair, {"city": city}))
    if pair in NO_CONTENT:
        assert "output" not in end
    elif pair in MCP:
        assert end["output_type"] == "CallToolResult"
        assert end["output"]["data"]["isError"] is False
    else:
        short = {"lc-toolexc", "tl-dec"}  # their tool returned the city only
        celsius = {} if pair in short else {"celsius": 21.5}
        assert end["output"]["data"] == {"city": city, **celsius}
    assert end["otlp"].get("guessed", []) == GUESSED.get(pair, [])
    assert end["otlp"]["span"]["attributes"] == SPANS[f"{pair} ok"]["attributes"]


@pytest.mark.parametrize("pair", sorted({*PAIRS} - {"claude-sdk"}))
def test_failed_call_has_its_message(pair: str) -> None:
    start, end = events_of(read(f"{pair} failed"))

    assert end["is_error"]
    assert start["tool_name"].endswith("boom")
    message = end["output"]["error"]["message"]
    if pair in REDACTED:
        assert message == "Tool execution failed. Error details are redacted."
    elif pair == "mcp-mid":
        assert message == "Error executing tool mid_boom"
    else:
        assert message.endswith("boom 7")
    assert "Traceback" not in message
    assert start.get("tool_call_id") != "<not specified>"


@pytest.mark.parametrize("pair", PAIRS)
def test_context_is_read_from_the_names_of_each_convention(pair: str) -> None:
    start, _ = events_of(read(f"{pair} ok"))

    assert start["context"].get("agent") == AGENTS.get(pair)
    assert (start["context"].get("conversation") == "conv-1") == (pair in CONVERSATIONS)


def test_callback_around_a_result_is_taken_off() -> None:
    """OpenLLMetry writes so what a LangChain tool returned that was not called by a model."""
    about = '"kwargs": {"tags": [], "color": "green", "name": "async_lookup"}'
    for output, expected in (
        ('"value of k"', "value of k"),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ("3", 3),
    ):
        value = f'{{"output": {output}, {about}}}'
        attributes = {
            **SPANS["langchain-trace ok"]["attributes"],
            **dict.fromkeys(("traceloop.entity.output", "gen_ai.tool.call.result"), value),
        }
        _, end = events_of(read("langchain-trace ok", attributes=attributes))
        assert end["output"]["data"] == expected


@pytest.mark.parametrize(
    ("template", "conversation"),
    [("OpenAI Agents trace: {name}", "conv-1"), ("my span", None)],
)
def test_group_of_openai_agents_is_the_conversation(
    template: str, conversation: str | None
) -> None:
    """Logfire writes it on the outermost span; elsewhere the name says too little."""
    attributes = {"logfire.msg_template": template, "group_id": "conv-1"}
    above = read("oaa-logfire ok", 1, name=template, attributes=attributes)
    start, _ = events_of(above, read("oaa-logfire ok", 2, parent=1))

    assert start.get("run_id") == conversation


def test_part_of_a_call_says_that_it_failed() -> None:
    """Claude Code states a failure only in the span of the execution inside the tool's span."""
    failed = Span(
        trace_id=TRACE,
        span_id=f"{2:016x}",
        parent_span_id=f"{1:016x}",
        name="claude_code.tool.execution",
        start_time_unix_nano=START,
        status=Status(STATUS_ERROR, "no"),
    )
    start, end = events_of(read("claude-sdk failed"), failed)

    assert (start["tool_name"], end["is_error"]) == ("boom", True)
    assert end["output"]["error"]["message"] == "no"
    assert [each["span_id"] for each in end["otlp"]["merged"]] == [f"{2:016x}"]
    assert map_spans([failed]).calls == []


def layer(number: int, parent: int, scope: str, status: int, **members: Any) -> Span:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "boom"}
    return read(
        "autogen failed",
        number,
        parent,
        attributes=attributes,
        scope={"name": scope},
        status={"code": status, "message": "inner" if status == 2 else ""},
        events=[],
        **members,
    )


def test_failure_below_a_layer_that_says_ok_counts() -> None:
    _, end = events_of(layer(1, 9, "outer", 1), layer(2, 1, "inner", 2))

    assert end["is_error"]
    assert end["output"]["error"]["message"] == "inner"


@pytest.mark.parametrize(("first", "second", "is_error"), [(2, 1, False), (1, 2, True)])
def test_later_of_two_attempts_decides(first: int, second: int, *, is_error: bool) -> None:
    attempts = [
        layer(2, 1, "inner", first, end_time_unix_nano=START + 100),
        layer(3, 1, "inner", second, end_time_unix_nano=START + 200),
        layer(4, 2, "innermost", 2, end_time_unix_nano=START + 90) if first == 2 else None,
    ]
    _, end = events_of(layer(1, 9, "outer", 1), *filter(None, attempts))

    assert end["is_error"] == is_error


def test_span_around_parallel_calls_is_no_call() -> None:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "(merged tools)"}
    mapped = map_spans([read("adk-content ok", attributes=attributes)])

    assert (mapped.calls, len(mapped.others)) == ([], 1)


def test_hand_over_to_a_mounted_server_is_no_call() -> None:
    attributes = {"mcp.method.name": "tools/call", "fastmcp.component.key": "tool:lookup@"}
    spans = [
        read("fastmcp4 ok", 1),
        read("fastmcp4 ok", 2, 1, name="delegate lookup", attributes=attributes),
    ]
    mapped = map_spans(spans)

    assert [call.facts[0].tool_name for call in mapped.calls] == ["get_weather"]


@pytest.mark.parametrize(
    "parameters",
    ['{"city": {"type": "string"}}', '{"type": "object", "properties": {}}', '{"properties": {}}'],
)
def test_schema_is_not_taken_for_arguments(parameters: str) -> None:
    attributes = {"openinference.span.kind": "TOOL", "tool.parameters": parameters}
    start, _ = events_of(read("oaa-sens ok", attributes=attributes))

    assert start["args"] is None


@pytest.mark.parametrize(
    ("sent", "expected", "is_guessed"),
    [
        ("{'a': (1, None)}", {"a": [1, None]}, True),
        ("{'a': object()}", "{'a': object()}", False),
        ("[" * 5000, "[" * 5000, False),
        ("{" + "'a': 1, " * 4000 + "}", "{" + "'a': 1, " * 4000 + "}", False),
        ("{'a': 1e999}", "{'a': 1e999}", False),
        ("{'a': {1}}", "{'a': {1}}", False),
        ("(a call of a tool)", "(a call of a tool)", False),
        ('{"kwargs": {"a": 1}, "other": 2}', {"kwargs": {"a": 1}, "other": 2}, False),
        ('{"output": {"kwargs": 1}}', {"output": {"kwargs": 1}}, False),
        ("content='", "content='", False),
    ],
)
def test_only_what_is_a_literal_or_a_wrapper_is_read_as_one(
    sent: str, expected: object, *, is_guessed: bool
) -> None:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.call.arguments": sent,
        "gen_ai.tool.call.result": sent,
    }
    start, end = events_of(read("autogen ok", attributes=attributes))

    assert (start["args"], end["output"]["data"]) == (expected, expected)
    assert end["otlp"].get("guessed", []) == (["args", "result"] if is_guessed else [])


def test_stack_is_taken_off_an_error_in_linear_time() -> None:
    """A message of 40 KB took 7 s, and four times as long for each doubling."""
    assert stated_error("boom\n\nError: boom\n    at run (a.js:1)") == (None, "boom")
    hostile = "\n    at " + "\n\n" * 500_000
    assert stated_error(hostile) == (None, hostile)
