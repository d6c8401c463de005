"""What an MCP tool returned, read from its result as MCP defines it."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import CallToolResult, ImageContent, TextContent
from tooltrail.mcp_results import (
    McpPeers,
    document_of,
    read_peers,
    read_result,
    with_structured,
)

WEATHER = {"celsius": 22.5}
TEXT = {"type": "text", "text": json.dumps(WEATHER)}
PROSE = {"type": "text", "text": "It is warm."}


@pytest.mark.parametrize(
    ("document", "value", "source"),
    [
        ({"content": [PROSE], "structuredContent": WEATHER}, WEATHER, "structured"),
        ({"content": [PROSE], "structured_content": [1]}, [1], "structured"),
        ({"content": [], "structuredContent": 0}, 0, "structured"),
        ({"structuredContent": WEATHER}, WEATHER, "structured"),
        ({"content": [TEXT]}, WEATHER, "text"),
        ({"content": [TEXT], "structuredContent": None}, WEATHER, "text"),
        ({"content": [TEXT, TEXT]}, None, ""),
        ({"content": [TEXT, {"type": "image", "data": ""}]}, None, ""),
        ({"content": [PROSE]}, None, ""),
        ({"content": [{"type": "text", "text": "42"}]}, None, ""),
        ({"content": [{"type": "text", "text": "{oh"}]}, None, ""),
        ({"content": [{"type": "text", "text": "[" * 100_000}]}, None, ""),
        ({"content": []}, None, ""),
    ],
)
def test_structured_content_counts_or_one_json_text(
    document: dict[str, Any], value: Any, source: str
) -> None:
    result = read_result(document)
    assert result is not None
    assert (result.value, result.source) == (value, source)
    assert not result.is_error


@pytest.mark.parametrize(
    "document", [None, 1, "text", [], {}, {"content": "x"}, {"celsius": 1}, {"isError": "true"}]
)
def test_other_values_are_no_results(document: Any) -> None:
    assert read_result(document) is None


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"content": [{"type": "image"}, PROSE, TEXT], "isError": True}, "It is warm."),
        ({"content": [], "is_error": True}, ""),
        ({"isError": True}, ""),
    ],
)
def test_error_has_its_first_text_as_message(document: dict[str, Any], message: str) -> None:
    result = read_result(document)
    assert result is not None
    assert result.is_error
    assert result.message == message


@pytest.mark.parametrize(
    ("document", "is_complete"),
    [
        ({"resultType": "input_required", "inputRequests": {}, "requestState": "s"}, False),
        ({"resultType": "input_required", "requestState": "s"}, False),
        ({"resultType": "task", "task": {"taskId": "1", "status": "working"}}, False),
        ({"resultType": "complete", "content": []}, True),
        ({"resultType": "other", "content": []}, True),
        ({"content": []}, True),
    ],
)
def test_call_goes_on_after_an_interim_result(
    document: dict[str, Any], *, is_complete: bool
) -> None:
    result = read_result(document)
    assert result is not None
    assert result.is_complete is is_complete


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["content", "structuredContent", "isError", "text", "type", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_any_json_can_be_read(document: Any) -> None:
    result = read_result(document)
    if result is not None:
        assert isinstance(result.content, list)
        assert result.value is None or result.source


def test_result_of_the_python_sdk_is_read_by_the_protocol_names() -> None:
    result = CallToolResult(
        content=[TextContent(text="warm"), ImageContent(data="eA==", mime_type="image/png")],
        structured_content=WEATHER,
    )
    document = document_of(result)
    assert document["content"][1] == {"type": "image", "data": "eA==", "mimeType": "image/png"}
    assert (document["structuredContent"], document["isError"]) == (WEATHER, False)


def test_objects_of_other_classes_are_no_results() -> None:
    class Lookalike:
        content: list[Any]

        def __init__(self) -> None:
            self.content = []

    class CallToolResult:
        content = "not a list"

    for each in (Lookalike(), CallToolResult(), {"content": [], "isError": True}, None):
        assert document_of(each) is None


def test_dataclass_of_a_client_is_read_like_the_model() -> None:
    @dataclass
    class CallToolResult:  # as in FastMCP's client
        content: list[Any]
        structured_content: Any = None
        is_error: bool = False

    result = CallToolResult([TextContent(text="warm")], WEATHER)
    assert document_of(result) == {
        "content": [{"type": "text", "text": "warm"}],
        "isError": False,
        "structuredContent": WEATHER,
    }
    assert with_structured(result, {"celsius": 1}).structured_content == {"celsius": 1}


def test_structured_content_can_be_replaced() -> None:
    result = CallToolResult(content=[], structured_content=WEATHER)
    assert with_structured(result, {"celsius": 1}).structured_content == {"celsius": 1}
    assert result.structured_content == WEATHER


@pytest.mark.parametrize(
    ("stated", "result", "expected"),
    [
        (None, {}, McpPeers()),
        ({"server": {"name": "weather", "version": "1.2"}}, {}, McpPeers(server="weather 1.2")),
        (
            {"client": {"name": "desk"}, "protocol_version": "2026-07-28"},
            {"_meta": {"io.modelcontextprotocol/serverInfo": {"name": "weather", "version": ""}}},
            McpPeers("weather", "desk", "2026-07-28"),
        ),
        ({"client": ["x"], "server": {"name": 1}, "protocol_version": 2}, [], McpPeers()),
        ("x", {"_meta": {"io.modelcontextprotocol/serverInfo": "weather"}}, McpPeers()),
    ],
)
def test_peers_are_read_as_far_as_they_are_well_formed(
    stated: Any, result: Any, expected: McpPeers
) -> None:
    assert read_peers(stated, result) == expected
