"""Tools that return the result of an MCP call: recorded, guarded and failed as MCP defines it."""

import asyncio
from typing import Any

import pytest
from mcp_types import CallToolResult, TextContent
from tooltrail.guard import ValidationError
from tooltrail.testing import MemoryTrail

SCHEMA = {"type": "object", "properties": {"celsius": {"type": "number"}}, "required": ["celsius"]}


def result(structured: Any = None, text: str = "warm", **members: Any) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(text=text)], structured_content=structured, **members
    )


def test_result_is_recorded_as_one_of_mcp(trail: MemoryTrail) -> None:
    @trail.tool
    async def get_weather() -> CallToolResult:
        return result({"celsius": 22.5})

    assert asyncio.run(get_weather()).structured_content == {"celsius": 22.5}
    assert trail.models
    end = trail.events[1]
    assert end["output_type"] == "CallToolResult"
    assert end["output"]["data"]["structuredContent"] == {"celsius": 22.5}
    assert not end["is_error"]


def test_error_result_fails_the_call_and_reaches_the_caller(trail: MemoryTrail) -> None:
    @trail.tool(output_schema=SCHEMA)
    def get_weather() -> CallToolResult:
        return result(text="no such city", is_error=True)

    assert get_weather().is_error
    end = trail.events[1]
    assert end["is_error"]
    error = end["output"]["error"]
    assert (error["type"], error["message"]) == ("tool_error", "no such city")
    assert error["details"]["result"]["isError"] is True
    assert "guard" not in end, "an output schema does not describe errors"


def test_error_text_is_redacted_and_left_out_without_capture(trail: MemoryTrail) -> None:
    @trail.tool(capture="none")
    def get_weather() -> CallToolResult:
        return result(text="password is hunter2", is_error=True)

    get_weather()
    assert "hunter2" not in str(trail.events)


@pytest.mark.parametrize(
    ("returned", "path", "code"),
    [
        (result({"celsius": "warm"}), "$.celsius", "WRONG_TYPE"),
        (result(None, '{"celsius": "warm"}'), "$.celsius", "WRONG_TYPE"),
        (result(None, "warm"), "$", "MISSING_STRUCTURED_CONTENT"),
    ],
    ids=["structured", "text", "missing"],
)
def test_guard_judges_what_the_schema_describes(
    trail: MemoryTrail, returned: CallToolResult, path: str, code: str
) -> None:
    @trail.tool(output_schema=SCHEMA)
    def get_weather() -> CallToolResult:
        return returned

    with pytest.raises(ValidationError):
        get_weather()
    assert trail.models
    end = trail.events[1]
    assert [(each["path"], each["code"]) for each in end["guard"]["violations"]] == [(path, code)]
    assert end["output_type"] == "CallToolResult"
    assert end["guard"]["received"]["content"][0]["type"] == "text"


@pytest.mark.parametrize("text", ["warm", '{"celsius": 22.5}'])
def test_conforming_result_passes_unchanged(trail: MemoryTrail, text: str) -> None:
    returned = result({"celsius": 22.5} if text == "warm" else None, text)

    @trail.tool(output_schema=SCHEMA)
    def get_weather() -> CallToolResult:
        return returned

    assert get_weather() is returned
    assert trail.events[1]["guard"]["outcome"] == "passed"


@pytest.mark.parametrize(
    "options",
    [
        {"on_invalid": "coerce-and-warn"},
        {"on_invalid": "fallback", "fallback_value": {"celsius": 21}},
    ],
)
def test_repaired_content_is_in_the_result(trail: MemoryTrail, options: dict[str, Any]) -> None:
    @trail.tool(output_schema=SCHEMA, **options)
    def get_weather() -> CallToolResult:
        return result({"celsius": "21"})

    assert get_weather().structured_content == {"celsius": 21}
    end = trail.events[1]
    assert end["output"]["data"]["structuredContent"] == {"celsius": 21}
    assert end["guard"]["received"]["structuredContent"] == {"celsius": "21"}


@pytest.mark.parametrize("strategy", ["throw", "strip-extra", "coerce-and-warn"])
def test_missing_content_cannot_be_repaired(trail: MemoryTrail, strategy: str) -> None:
    @trail.tool(output_schema=SCHEMA, on_invalid=strategy)
    def get_weather() -> CallToolResult:
        return result()

    with pytest.raises(ValidationError):
        get_weather()


def test_fallback_stands_in_for_missing_content(trail: MemoryTrail) -> None:
    @trail.tool(output_schema=SCHEMA, on_invalid="fallback", fallback_value={"celsius": 0})
    def get_weather() -> CallToolResult:
        return result()

    assert get_weather().structured_content == {"celsius": 0}


def test_client_and_server_can_be_stated(trail: MemoryTrail) -> None:
    @trail.tool
    def get_weather() -> CallToolResult:
        call = trail.current()
        assert call is not None
        call.mcp = {
            "client": {"name": "desk", "api_key": "hunter2"},
            "protocol_version": "2026-07-28",
        }
        return result({"celsius": 1})

    get_weather()
    assert trail.models
    end = trail.events[1]
    assert end["mcp"]["protocol_version"] == "2026-07-28"
    assert end["mcp"]["client"]["name"] == "desk"
    assert "hunter2" not in str(end)
